import { expect, test } from "vitest";
import type { EventRecord } from "../src/events";
import { asEvent } from "../src/events";
import { cardsOf, subtasksOf } from "../src/fold";
import { made } from "./sessions";

test("an action and its observation are one card, also with others between them", () => {
  const cards = cardsOf([
    made("CmdRunAction", 1),
    made("AgentDelegateAction", 2, { inputs: {} }),
    made("CmdOutputObservation", 3, { cause: 1 }),
    made("AgentDelegateObservation", 4, { cause: 2 }),
  ]);
  expect(cards.map(({ id, observation }) => [id, observation?.id])).toEqual([
    [1, 3],
    [2, 4],
  ]);
});

test("what is only for the record makes no card", () => {
  const quiet = [
    made("StepStarted", 1),
    made("CompletionEvent", 2),
    made("SnapshotEvent", 3, { problem: "" }),
    made("EgressEvent", 4, { allowed: true }),
    made("SessionStarted", 5, { resumed: false }),
    made("AgentDataEvent", 6),
  ];
  expect(cardsOf(quiet)).toEqual([]);
});

test("problems are told by themselves", () => {
  const told = [
    made("ErrorObservation", 1, { content: "that reply made no sense", cause: 99 }),
    made("SnapshotEvent", 2, { problem: "the disk is full" }),
    made("EgressEvent", 3, { allowed: false }),
    made("AgentStateChangedObservation", 4, { agent_state: "error", cause: 1 }),
  ];
  expect(cardsOf(told).map(({ id }) => id)).toEqual([1, 2, 3, 4]);
});

test("cards that did not change stay the same objects, also when older events come before them", () => {
  const newer = [made("CmdRunAction", 5), made("CmdOutputObservation", 6, { cause: 5 }), made("CmdRunAction", 7)];
  const before = cardsOf(newer);
  const all: EventRecord[] = [made("AgentThinkAction", 4), ...newer, made("CmdOutputObservation", 8, { cause: 7 })];
  const after = cardsOf(all, before);
  expect(after[1]).toBe(before[0]);
  expect(after[2]).not.toBe(before[1]);
  expect(after[2]?.observation?.id).toBe(8);
});

test("an observation whose action is not loaded waits for it", () => {
  const observation = made("CmdOutputObservation", 2, { cause: 1 });
  expect(cardsOf([observation])).toEqual([]);
  expect(cardsOf([made("CmdRunAction", 1), observation])).toHaveLength(1);
});

test("delegates are a tree with their state and cost; those of a fork end together", () => {
  const usage = { input: 10, output: 1, cache_read: 0, cache_write: 0 };
  const found = subtasksOf([
    made("AgentDelegateAction", 1, { agent: "A", inputs: { task: "look" } }),
    made("CompletionEvent", 2, { subtask: 1, cost: 0.5, usage }),
    made("ForkAction", 3, { subtask: 1, children: [] }),
    made("AgentDelegateAction", 4, { agent: "B", inputs: {}, subtask: 1, cause: 3 }),
    made("AgentDelegateAction", 5, { agent: "C", inputs: {}, subtask: 1, cause: 3 }),
    made("CompletionEvent", 6, { subtask: 5, cost: null, usage }),
    made("ForkObservation", 7, {
      subtask: 1,
      cause: 3,
      outcomes: [
        { agent: "B", outcome: "finished", outputs: { answer: 42 }, diff: "" },
        { agent: "C", outcome: "error", outputs: {}, diff: "" },
      ],
    }),
    made("AgentDelegateObservation", 8, { cause: 1, outcome: "finished", outputs: {} }),
  ]);
  expect([...found.values()].map(({ id, parent, agent, state, cost }) => [id, parent, agent, state, cost])).toEqual([
    [1, 0, "A", "finished", 0.5],
    [4, 1, "B", "finished", 0],
    [5, 1, "C", "error", 0],
  ]);
  expect(found.get(1)?.task).toBe("look");
  expect(found.get(4)?.outputs).toEqual({ answer: 42 });
  expect(found.get(5)?.usage.input).toBe(10);
});

test("an event of a type that this version does not know is kept and told", () => {
  const event = asEvent({ type: "HologramAction", id: 9, timestamp: "2030-01-01T00:00:00Z", depth: 3 });
  expect(event).toMatchObject({ type: "UnknownEvent", id: 9, unknown: { depth: 3 } });
  expect(cardsOf([event])).toHaveLength(1);
});
