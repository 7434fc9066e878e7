import { expect, test } from "vitest";

import { asEvent, type JsonObject } from "../../src/events";
import { eventLine } from "../../src/panes/timeline/eventLine";

const line = (type: string, fields: JsonObject = {}) =>
  eventLine(asEvent({ type, id: 1, source: "agent", cause: null, subtask: 0, content: "", ...fields }));

test("an action's line has the wording of its card", () => {
  expect(line("CmdRunAction", { command: "ls -l\necho" })).toEqual({ kind: "Run", text: "ls -l", tone: "action" });
  expect(line("FileReadAction", { path: "a.py", start: 2, end: 9 }).text).toBe("a.py, lines 2–9");
  expect(line("AgentFinishAction", { outputs: { message: "Done." } }).text).toBe("Done.");
  expect(line("AgentFinishAction", { outputs: { score: 1 } }).text).toBe("score: 1");
  expect(line("RunTestsAction", { thought: "", command: "make" })).toMatchObject({ kind: "RunTests", text: "{" });
});

test("a user's message and a failed command stand out", () => {
  expect(line("MessageAction", { content: "Do it", source: "user" })).toEqual({
    kind: "You",
    text: "Do it",
    tone: "user",
  });
  expect(line("CmdOutputObservation", { exit_code: 2, status: "done", content: "no" })).toEqual({
    kind: "Cmd output",
    text: "exit 2: no",
    tone: "trouble",
  });
});

test("other events have the wording of their notices, or their numbers", () => {
  const usage = { input: 10, cache_read: 5, cache_write: 0, output: 3 };
  const call = { usage, cost: 0.5, failed_attempts: [] };
  expect(line("PlanObservation", { content: "1. a" }).text).toBe("1. a");
  expect(line("CompletionEvent", call).text).toBe("15 tokens in, 3 out, $0.5000");
  expect(line("SnapshotEvent", { changed: 2, problem: "" })).toEqual({
    kind: "Snapshot",
    text: "2 paths changed",
    tone: "record",
  });
  expect(line("SomethingNew").text).toBe("An event of a newer version: SomethingNew");
});
