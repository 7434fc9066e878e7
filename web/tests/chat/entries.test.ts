import { describe, expect, it } from "vitest";
import { asEvent, type EventRecord, ownFields } from "../../src/events";
import { type Entry, entriesOf, lineageOf } from "../../src/chat/entries";
import { describe as describeAction } from "../../src/wording/actions";
import { rowOf, rowsOf } from "../../src/chat/rows";
import { event, printed, shell } from "./events";

function kinds(events: EventRecord[]): string[] {
  return entriesOf(events).map((entry) => entry.kind);
}

function steps(entries: Entry[]) {
  return entries.filter((entry) => entry.kind === "step");
}

describe("entries", () => {
  it("pair an action with what came of it, also when other events come between", () => {
    const events = [shell(1, "ls"), shell(2, "pwd"), printed(3, 2, "/"), event("StepStarted", 4), printed(5, 1, "a")];
    expect(steps(entriesOf(events)).map(({ action, observation }) => [action.id, observation?.id])).toEqual([
      [1, 5],
      [2, 3],
    ]);
  });

  it("show an action that is still at work without a result, and no result without its action", () => {
    expect(steps(entriesOf([printed(8, 3, "old"), shell(9, "sleep 9")]))).toMatchObject([{ id: 9, observation: null }]);
  });

  it("show an action of a user's own agent by its name and its own fields", () => {
    const common = { schema: 1, timestamp: "", source: "agent", subtask: 0 };
    const asked = asEvent({ ...common, type: "RunTestsAction", id: 1, cause: null, thought: "", command: "make" });
    const result = asEvent({ ...common, type: "RunTestsObservation", id: 2, cause: 1, content: "3 passed", passed: 3 });
    const [step] = steps(entriesOf([asked, result]));
    expect(step).toMatchObject({ id: 1, observation: { content: "3 passed" } });
    expect(describeAction(step!.action)).toMatchObject({ verb: "RunTests", object: "", language: "json" });
    expect(ownFields(step!.action)).toEqual({ command: "make" });
  });

  it("give each child of a fork its part of the fork's result, and none while the fork goes on", () => {
    const child = (id: number) => event("AgentDelegateAction", id, { cause: 1, agent: "Try", inputs: {} });
    const outcome = (text: "finished" | "rejected") => ({ agent: "Try", outcome: text, outputs: {}, diff: "" });
    const events = [event("ForkAction", 1, { children: [] }), child(2), child(3)];
    expect(steps(entriesOf(events)).map(({ observation }) => observation)).toEqual([null, null, null]);
    const outcomes = [outcome("finished"), outcome("rejected")];
    const ended = steps(entriesOf([...events, event("ForkObservation", 9, { cause: 1, outcomes })]));
    expect(ended.map(({ observation }) => observation)).toMatchObject([
      { outcomes },
      { id: 9, outcomes: [outcomes[0]] },
      { id: 9, outcomes: [outcomes[1]] },
    ]);
    const failed = event("ErrorObservation", 9, { cause: 1, content: "no space" });
    expect(steps(entriesOf([...events, failed])).map(({ observation }) => observation?.id)).toEqual([9, 9, 9]);
  });

  it("have the question and the yes with the step, and a no as a notice", () => {
    const asks = event("AgentStateChangedObservation", 2, {
      cause: 1,
      agent_state: "awaiting_user_confirmation",
      reason: "user",
      content: "It can change files.",
    });
    const answer = event("ApprovalEvent", 3, { action: 1, allowed: true, comment: "", rule: null });
    expect(entriesOf([shell(1, "rm x"), asks])).toMatchObject([{ observation: null, question: asks, approval: null }]);
    expect(entriesOf([shell(1, "rm x"), asks, answer])).toMatchObject([{ question: asks, approval: answer }]);
    expect(kinds([shell(1, "rm x"), asks, { ...answer, allowed: false }])).toEqual(["step", "notice"]);
    expect(kinds([asks, answer])).toEqual(["notice", "notice"]);
  });

  it("say the thought of a reply once, whatever number of actions it had", () => {
    const same = { thought: "Look first.", completion: 7 };
    const next = { thought: "Then mend.", completion: 9 };
    const entries = entriesOf([shell(8, "ls", same), shell(10, "pwd", same), shell(12, "make", next)]);
    expect(entries.map((entry) => (entry.kind === "prose" ? entry.text : entry.kind))).toEqual([
      "Look first.",
      "step",
      "step",
      "Then mend.",
      "step",
    ]);
  });

  it("leave out what says nothing to a person", () => {
    const quiet: EventRecord[] = [
      event("StepStarted", 1),
      event("CompletionEvent", 2, { failed_attempts: [] }),
      event("AgentThinkAction", 3),
    ];
    expect(kinds(quiet)).toEqual([]);
  });

  it("tell of a reply that made no sense, which is no action's result", () => {
    const [entry] = entriesOf([event("ErrorObservation", 3, { content: "There is no tool 'x'." })]);
    expect(entry).toMatchObject({ kind: "notice", notice: { tone: "bad", text: "There is no tool 'x'." } });
  });

  it("show the same network answer once", () => {
    const asked = { host: "pypi.org", port: 443, allowed: false, reason: "not allowed" };
    const events = [1, 2, 3].map((id) => event("EgressEvent", id, asked));
    expect(kinds([...events, event("EgressEvent", 4, { ...asked, allowed: true })])).toEqual(["notice", "notice"]);
  });

  it("indent delegates and head them where another had the word before", () => {
    const child = (id: number, agent: string) => event("AgentDelegateAction", id, { agent, cause: 1, inputs: {} });
    const fork = event("ForkAction", 1, { children: [] });
    const events = [
      fork,
      child(2, "lib:One"),
      child(3, "lib:Two"),
      shell(4, "a", { subtask: 2 }),
      shell(5, "b", { subtask: 3 }),
    ];
    const shown = entriesOf(events).map((entry) => [entry.kind, entry.depth, "name" in entry ? entry.name : ""]);
    expect(shown.slice(3)).toEqual([
      ["heading", 1, "One"],
      ["step", 1, ""],
      ["heading", 1, "Two"],
      ["step", 1, ""],
    ]);
  });

  it("tell the children of one fork apart by their numbers", () => {
    const known = new Map([
      [5, { parent: 0, agent: "helper" }],
      [6, { parent: 0, agent: "helper" }],
      [7, { parent: 5, agent: "helper" }],
    ]);
    const name = (subtask: number) => entriesOf([shell(9, "a", { subtask })], known)[0];
    expect(name(5)).toMatchObject({ kind: "heading", name: "helper 1" });
    expect(name(6)).toMatchObject({ name: "helper 2" });
    expect(name(7)).toMatchObject({ name: "helper" });
  });

  it("need no heading below the action that opens a delegate, nor when it is back at its parent", () => {
    const opens = event("AgentDelegateAction", 1, { agent: "helper", inputs: {} });
    expect(kinds([opens, shell(2, "a", { subtask: 1 }), shell(3, "b")])).toEqual(["step", "step", "step"]);
  });

  it("know a delegate that began before the first loaded event", () => {
    const known = new Map([[5, { parent: 0, agent: "helper" }]]);
    expect(entriesOf([shell(9, "a", { subtask: 5 })], known)[0]).toMatchObject({ kind: "heading", name: "helper" });
  });

  it("end the line of a subtask whose parents form a ring", () => {
    const ring = new Map([
      [1, { parent: 2, agent: "a" }],
      [2, { parent: 1, agent: "b" }],
    ]);
    expect(lineageOf(1, ring).length).toBeLessThan(30);
  });
});

describe("rows", () => {
  const NONE = new Map<number, string>();
  const run = (first: number, count: number, fields: { subtask?: number } = {}) =>
    Array.from({ length: count }, (_, at) => first + 2 * at).flatMap((id) => [
      shell(id, "ls", fields),
      printed(id + 1, id, "a"),
    ]);
  const shown = (events: EventRecord[], opened?: Set<number>) =>
    rowsOf(entriesOf(events), NONE, opened).map((row) => (row.kind === "group" ? row.steps.length : row.kind));

  it("end with the replies that are being written, but not with the JSON of constrained models", () => {
    const texts = new Map([
      [0, "I will look"],
      [4, '  {"command": "ls'],
      [6, "\n"],
    ]);
    expect(rowsOf([], texts)).toEqual([{ kind: "live", key: "live-0", subtask: 0, text: "I will look" }]);
  });

  it("are found by their event, or by the next one that is shown", () => {
    const rows = rowsOf(entriesOf([shell(1, "a"), printed(2, 1, ""), shell(3, "b")]), NONE);
    expect(rowOf(rows, 2)?.key).toBe("3");
    expect(rowOf(rows, 4)).toBeNull();
    expect(rowOf(rowsOf(entriesOf(run(1, 4)), NONE), 5)?.key).toBe("group-1");
  });

  it("group three or more finished steps that nothing separates", () => {
    expect(shown(run(1, 2))).toEqual(["step", "step"]);
    expect(shown([...run(1, 3), shell(7, "make")])).toEqual([3, "step"]);
    expect(shown([...run(1, 3), shell(7, "make", { thought: "Now make." }), printed(8, 7, "")])).toEqual([
      3,
      "prose",
      "step",
    ]);
    const said = event("MessageAction", 7, { content: "Go on.", source: "user" });
    expect(shown([...run(1, 3), said, ...run(8, 3)])).toEqual([3, "message", 3]);
    const delegates = [event("AgentDelegateAction", 7, { agent: "helper", inputs: {} }), ...run(8, 3, { subtask: 7 })];
    expect(shown([...run(1, 3), ...delegates])).toEqual([3, "step", 3]);
  });

  it("of a group are below it once it is open, also after it has grown at its start", () => {
    expect(shown(run(11, 3), new Set([11]))).toEqual([3, "step", "step", "step"]);
    expect(shown(run(1, 8), new Set([11]))[0]).toBe(8);
    expect(shown(run(1, 8), new Set([11]))).toHaveLength(9);
    expect(shown(run(1, 8), new Set([99]))).toEqual([8]);
  });

  it("of a group have the quiet notices among its steps, but not the warnings", () => {
    const asked = { host: "pypi.org", port: 443, allowed: true, reason: "" };
    const reached = event("EgressEvent", 5, asked);
    expect(shown([...run(1, 2), reached, ...run(6, 1)])).toEqual([3]);
    expect(shown([...run(1, 2), { ...reached, allowed: false }, ...run(6, 1)])).toEqual([
      "step",
      "step",
      "notice",
      "step",
    ]);
  });

  it("of a long session without prose are many enough to scroll through, and the same whatever is loaded", () => {
    const all = run(1, 500);
    const keys = (events: EventRecord[]) => rowsOf(entriesOf(events), NONE).map(({ key }) => key);
    expect(keys(all).length).toBeGreaterThan(15);
    expect(keys(all.slice(400))).toEqual(keys(all).slice(-keys(all.slice(400)).length));
  });
});
