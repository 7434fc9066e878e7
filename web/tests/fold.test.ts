import { expect, test } from "vitest";
import type { EventRecord } from "../src/events";
import { asEvent } from "../src/events";
import { cardsOf, subtasksOf } from "../src/fold";
import { eventOf } from "./sessions";

test("an action and its observation are one card, also with others between them", () => {
  const cards = cardsOf([
    eventOf("CmdRunAction", 1),
    eventOf("AgentDelegateAction", 2, { inputs: {} }),
    eventOf("CmdOutputObservation", 3, { cause: 1 }),
    eventOf("AgentDelegateObservation", 4, { cause: 2 }),
  ]);
  expect(cards.map(({ id, observation }) => [id, observation?.id])).toEqual([
    [1, 3],
    [2, 4],
  ]);
});

test("cards that did not change stay the same objects, also when older events come before them", () => {
  const newer = [
    eventOf("CmdRunAction", 5),
    eventOf("CmdOutputObservation", 6, { cause: 5 }),
    eventOf("CmdRunAction", 7),
  ];
  const before = cardsOf(newer);
  const all: EventRecord[] = [
    eventOf("AgentThinkAction", 4),
    ...newer,
    eventOf("CmdOutputObservation", 8, { cause: 7 }),
  ];
  const after = cardsOf(all, before);
  expect(after[1]).toBe(before[0]);
  expect(after[2]).not.toBe(before[1]);
  expect(after[2]?.observation?.id).toBe(8);
});

test("an observation whose action is not loaded waits for it", () => {
  const observation = eventOf("CmdOutputObservation", 2, { cause: 1 });
  expect(cardsOf([observation])).toEqual([]);
  expect(cardsOf([eventOf("CmdRunAction", 1), observation])).toHaveLength(1);
});

test("delegates are a tree with their state and cost; those of a fork end together", () => {
  const usage = { input: 10, output: 1, cache_read: 0, cache_write: 0 };
  const found = subtasksOf([
    eventOf("AgentDelegateAction", 1, { agent: "A", inputs: { task: "look" } }),
    eventOf("CompletionEvent", 2, { subtask: 1, cost: 0.5, usage }),
    eventOf("ForkAction", 3, { subtask: 1, children: [] }),
    eventOf("AgentDelegateAction", 4, { agent: "B", inputs: {}, subtask: 1, cause: 3 }),
    eventOf("AgentDelegateAction", 5, { agent: "C", inputs: {}, subtask: 1, cause: 3 }),
    eventOf("CompletionEvent", 6, { subtask: 5, cost: null, usage }),
    eventOf("ForkObservation", 7, {
      subtask: 1,
      cause: 3,
      outcomes: [
        { agent: "B", outcome: "finished", outputs: { answer: 42 }, diff: "" },
        { agent: "C", outcome: "error", outputs: {}, diff: "" },
      ],
    }),
    eventOf("AgentDelegateObservation", 8, { cause: 1, outcome: "finished", outputs: {} }),
  ]);
  expect([...found.values()].map(({ id, parent, agent, state, cost }) => [id, parent, agent, state, cost])).toEqual([
    [1, 0, "A", "finished", 0.5],
    [4, 1, "B", "finished", 0],
    [5, 1, "C", "error", 0],
  ]);
  expect(found.get(1)?.task).toBe("look");
});

test("the server's state of working delegates wins, except over an ending", () => {
  const plan = [{ id: "0", goal: "look", state: "open" as const, subtasks: [] }];
  const usage = { input: 0, output: 0, cache_read: 0, cache_write: 0 };
  const state = { parent: 0, agent: "A", state: "running" as const, iterations: 7, cost: 2, usage, plan };
  const events = [
    eventOf("AgentDelegateAction", 1, { agent: "A", inputs: { task: "look" } }),
    eventOf("AgentDelegateAction", 2, { agent: "A", inputs: {} }),
    eventOf("ErrorObservation", 3, { cause: 2 }),
  ];
  const subtasks = subtasksOf(
    events,
    [1, 2, 9].map((id) => ({ ...state, id })),
  );
  expect(subtasks.get(1)).toMatchObject({ task: "look", iterations: 7, cost: 2, plan });
  expect(subtasks.get(2)).toMatchObject({ state: "error", ended: true, plan: [] });
  expect(subtasks.get(9)).toMatchObject({ task: "", iterations: 7 });
});

test("an event of an unknown type is kept", () => {
  const event = asEvent({ type: "HologramAction", id: 9, timestamp: "2030-01-01T00:00:00Z", depth: 3 });
  expect(event).toMatchObject({ type: "UnknownEvent", id: 9, unknown: { depth: 3 } });
});
