import { describe, expect, it } from "vitest";
import type { StepEntry } from "../../src/chat/entries";
import { entriesOf } from "../../src/chat/entries";
import { groupLine, isFoldable, stepLine } from "../../src/chat/steps";
import type { EventRecord } from "../../src/events";
import { event, printed, shell } from "./events";

const at = (second: number) => `2026-01-02T03:04:${String(second).padStart(2, "0")}Z`;

function steps(...events: EventRecord[]): StepEntry[] {
  return entriesOf(events).filter((entry) => entry.kind === "step");
}

describe("the line of a step", () => {
  it("says what was done, the outcome and the duration", () => {
    const [step] = steps(shell(1, "make test\nmake lint", { timestamp: at(1) }), {
      ...printed(2, 1, "one\ntwo\n", 0),
      timestamp: at(4),
    });
    const line = { verb: "Run", object: "make test", tone: "quiet", outcome: "2 lines", seconds: 3 };
    expect(stepLine(step!)).toEqual(line);
    const [failed] = steps(shell(1, "make"), printed(2, 1, "no rule", 2));
    expect(stepLine(failed!)).toMatchObject({ tone: "bad", outcome: "exit 2" });
  });

  it("counts the seconds from the approval on, as the user's are not the action's", () => {
    const asks = event("AgentStateChangedObservation", 2, { cause: 1, agent_state: "awaiting_user_confirmation" });
    const answer = event("ApprovalEvent", 3, { action: 1, allowed: true, timestamp: at(50) });
    const waiting = [shell(1, "make", { timestamp: at(1) }), asks];
    expect(stepLine(steps(...waiting)[0]!)).toMatchObject({ tone: "warn", outcome: "needs your approval" });
    const [step] = steps(...waiting, answer, { ...printed(4, 1, ""), timestamp: at(52) });
    expect(stepLine(step!)).toMatchObject({ outcome: "no output", seconds: 2 });
  });

  it("of a fork counts how its children ended, and that of a child says how it ended", () => {
    const child = (id: number) => event("AgentDelegateAction", id, { cause: 1, agent: "Try", inputs: {} });
    const outcome = (outcome: "finished" | "rejected") => ({ agent: "Try", outcome, outputs: {}, diff: "" });
    const outcomes = [outcome("rejected"), outcome("finished"), outcome("rejected")];
    const fork = event("ForkAction", 1, { children: [] });
    const ended = event("ForkObservation", 9, { cause: 1, outcomes });
    const lines = steps(fork, child(2), child(3), child(4), ended).map((step) => stepLine(step));
    expect(lines.map(({ tone, outcome }) => [tone, outcome])).toEqual([
      ["good", "2 rejected, 1 finished"],
      ["warn", "rejected"],
      ["good", "finished"],
      ["warn", "rejected"],
    ]);
  });

  it("of an edit counts its lines", () => {
    const content = "--- a.py\n+++ a.py\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n";
    const edit = event("FileEditAction", 1, { path: "a.py", old: "b", new: "c\nd" });
    const done = { cause: 1, content, path: "a.py", syntax_error: "", undefined_names: [] };
    const [step] = steps(edit, event("FileEditObservation", 2, done));
    expect(stepLine(step!)).toMatchObject({ verb: "Edit", object: "a.py", outcome: "+2 −1" });
    const undefined_names = ["line 1: undefined name 'b'", "line 2: undefined name 'c'"];
    const [wrong] = steps(edit, event("FileEditObservation", 2, { ...done, undefined_names }));
    expect(stepLine(wrong!).outcome).toBe("line 1: undefined name 'b'; line 2: undefined name 'c'");
  });

  it("of the plan names the task, and does not repeat the plan", () => {
    const plan = "[>] 0 Make it pass\n  [x] 0.1 Look around\n  [ ] 0.10 Repair it";
    const change = event("ModifyTaskAction", 1, { task_id: "0.1", state: "completed" });
    const [step] = steps(change, event("PlanObservation", 2, { cause: 1, content: plan }));
    expect(stepLine(step!)).toMatchObject({ verb: "Plan", object: "Look around: completed", outcome: "" });
    expect(isFoldable(step!)).toBe(false);
  });
});

describe("the line of a group", () => {
  it("counts what was done and what failed, and names a file that is the only one", () => {
    const read = (id: number, path: string) => event("FileReadAction", id, { path, start: 1, end: null });
    const content = (id: number, cause: number) => event("FileReadObservation", id, { cause, content: "x" });
    const group = steps(
      shell(1, "ls", { timestamp: at(1) }),
      { ...printed(2, 1, "a"), timestamp: at(3) },
      shell(3, "false", { timestamp: at(4) }),
      { ...printed(4, 3, "", 1), timestamp: at(5) },
      read(5, "a.py"),
      content(6, 5),
      read(7, "a.py"),
      content(8, 7),
    );
    expect(groupLine(group)).toEqual({ text: "Ran 2 commands, read a.py", failed: 1, seconds: 3 });
    const more = [...group, ...steps(read(9, "b.py"), content(10, 9))];
    expect(groupLine(more).text).toBe("Ran 2 commands, read 2 files");
  });
});
