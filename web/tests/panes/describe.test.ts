import { expect, test } from "vitest";

import { asEvent, type JsonObject } from "../../src/events";
import { describe } from "../../src/panes/timeline/describe";

const event = (type: string, more: JsonObject = {}) =>
  describe(asEvent({ type, id: 1, source: "agent", cause: null, subtask: 0, content: "", ...more }));

test("an event is told by what it did", () => {
  expect(event("CmdRunAction", { command: "ls -l\necho" })).toEqual({ what: "cmd run", text: "ls -l", tone: "action" });
  expect(event("MessageAction", { content: "Do it", source: "user" })).toEqual({
    what: "you",
    text: "Do it",
    tone: "user",
  });
  expect(event("CmdOutputObservation", { exit_code: 2, status: "done", content: "no" })).toEqual({
    what: "cmd output",
    text: "exit code 2: no",
    tone: "trouble",
  });
  expect(event("AgentFinishAction", { outputs: { message: "Done." } }).text).toBe("Done.");
  expect(event("AgentFinishAction", { outputs: { score: 1 } }).text).toBe('{"score":1}');
  expect(event("PlanObservation", { content: "1. a" }).text).toBe("1. a");
});

test("a record is told by its figures, and one of a later version by its name", () => {
  const usage = { input: 10, cache_read: 5, cache_write: 0, output: 3 };
  expect(event("CompletionEvent", { usage, cost: 0.5 }).text).toBe("15 tokens in, 3 out, $0.5000");
  expect(event("SnapshotEvent", { changed: 2, problem: "" })).toEqual({
    what: "snapshot",
    text: "2 paths changed",
    tone: "record",
  });
  expect(event("SomethingNew")).toEqual({ what: "unknown", text: "", tone: "record" });
});
