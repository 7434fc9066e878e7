import { expect, test } from "vitest";

import type { EventRecord } from "../src/events";
import { forkPoint } from "../src/fork/forkPoint";
import { event, printed, shell } from "./chat/events";

function log(...events: EventRecord[]) {
  return ({ after, limit }: { after: number; limit: number }) =>
    Promise.resolve({ events: events.slice(after, after + limit) });
}

const step = (first: number) => [
  event("StepStarted", first),
  event("CompletionEvent", first + 1),
  shell(first + 2, "ls"),
  shell(first + 3, "pwd"),
  printed(first + 4, first + 2, "a"),
  event("SnapshotEvent", first + 5),
  printed(first + 6, first + 3, "/"),
];

test("a fork begins at the end of the step", async () => {
  const load = log(...step(1), ...step(8));
  for (const at of [1, 2, 3, 5, 7]) expect(await forkPoint(load, at)).toBe(7);
  for (const at of [8, 10, 14]) expect(await forkPoint(load, at)).toBe(14);
});

test("a step that asks is not at its end, and what the user does afterwards is not part of it", async () => {
  const asks = event("AgentStateChangedObservation", 4, { cause: 3, agent_state: "awaiting_user_confirmation" });
  const rest = [event("ApprovalEvent", 5, { action: 3, allowed: true }), printed(6, 3, "")];
  const said = event("MessageAction", 7, { content: "Stop.", source: "user" });
  const load = log(event("StepStarted", 1), event("CompletionEvent", 2), shell(3, "ls"), asks, ...rest, said);
  expect(await forkPoint(load, 3)).toBe(6);
  expect(await forkPoint(load, 7)).toBe(7);
});

test("a step may be longer than a page", async () => {
  const connections = Array.from({ length: 250 }, (_, at) => event("EgressEvent", at + 2));
  const load = log(shell(1, "pip install"), ...connections, printed(252, 1, ""), event("StepStarted", 253));
  expect(await forkPoint(load, 1)).toBe(252);
});
