import { describe, expect, it } from "vitest";
import { announcement } from "../../src/chat/announce";
import { progressText, statusOf } from "../../src/chat/banner";
import { treeOf } from "../../src/chat/delegates";
import { limitsFrom } from "../../src/chat/limits";
import { editPatch } from "../../src/chat/patch";
import { describe as describeAction, endingOf } from "../../src/wording/actions";
import { noticeOf } from "../../src/wording/notices";
import { bounded, exact, nestsTooDeep, outputsText, plain, sentences, taskText } from "../../src/wording/text";
import { asEvent, isAction } from "../../src/events";
import type { Subtask } from "../../src/fold";
import { event, printed } from "./events";

describe("text", () => {
  it("loses colours and titles, keeps the last version of an overwritten line, and spells the rest out", () => {
    expect(plain("\x1b[31mred\x1b[0m \x1b]0;title\x07ok\r\n10%\r100%\nbell\x07")).toBe("red ok\n100%\nbell\\x07");
  });

  it("hides nothing of what is judged", () => {
    expect(exact("rm \u202egnp.exe\r\x1b[2K 🎉 \ud800")).toBe("rm \\u202egnp.exe\\x0d\\x1b[2K 🎉 \\ud800");
  });

  it("hides no invisible characters, and leaves emoji and scripts that need joiners", () => {
    const tags = [..."Hi"].map((letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("");
    expect(exact(`a\u200bb\u061c\u2060\ufeff\u00ad${tags}`)).toBe(
      "a\\u200bb\\u061c\\u2060\\ufeff\\xad\\u{e0048}\\u{e0069}",
    );
    expect(exact("👨‍👩‍👧 ❤️ می‌خواهم")).toBe("👨‍👩‍👧 ❤️ می‌خواهم");
  });

  it("is bounded with every line counted, and not for the sake of three", () => {
    const lines = (count: number) => Array.from({ length: count }, (_, at) => String(at)).join("\n");
    expect(bounded(lines(13), 10).omitted).toBe(0);
    const { head, omitted, tail } = bounded(lines(100), 10);
    expect(head.split("\n").length + omitted + tail.split("\n").length).toBe(100);
  });

  it.each(["> ", ">", "1. ", "- ", "> 2) "])("of %j without end overflows the parser, and is not laid out", (level) => {
    expect(nestsTooDeep(`Let me think.\n${level.repeat(5000)}`)).toBe(true);
  });

  it("of quotes, lists and rules as people write them is laid out", () => {
    expect(nestsTooDeep(`> > quoted\n${"1. one\n   - two\n".repeat(500)}${"-".repeat(5000)}`)).toBe(false);
  });

  it("becomes sentences, each with its own end", () => {
    expect(sentences("no key: set OPENAI_API_KEY", "kept in memory.")).toBe(
      "No key: set OPENAI_API_KEY. Kept in memory.",
    );
    expect(sentences("", "Why?")).toBe("Why?");
  });

  it("tells a delegate's task before whatever else it was given", () => {
    expect(taskText({ path: "a.py", task: "Mend it." })).toBe("Mend it.\npath: a.py");
    expect(outputsText({ message: "Done.", files: ["a"] })).toBe('Done.\n\nfiles: [\n  "a"\n]');
  });
});

describe("a proposed edit", () => {
  it("shows common lines once", () => {
    expect(editPatch("a\nb\nc", "a\nB\nc")).toBe("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
  });

  it.each([
    ["a\na", "a"],
    ["", "new\nlines"],
    ["same", "same"],
  ])("has every line of %j and of %j", (old, replacement) => {
    const lines = editPatch(old, replacement).split("\n").slice(1, -1);
    const kept = (signs: string) => lines.filter((line) => signs.includes(line[0]!)).map((line) => line.slice(1));
    expect(kept(" -").join("\n")).toBe(old);
    expect(kept(" +").join("\n")).toBe(replacement);
  });
});

describe("the status of a session", () => {
  const status = (part: Partial<Parameters<typeof statusOf>[0]>) =>
    statusOf({ state: "running", reason: "", why: "", outputs: {}, interrupted: false, ...part });

  it("offers what helps against the reason of a pause", () => {
    expect(status({ state: "paused", reason: "limit", why: "100 steps" })).toMatchObject({
      detail: "100 steps. Change the limit to resume.",
      commands: ["limits"],
    });
    expect(status({ state: "paused", reason: "stuck" }).commands).toEqual(["rewind", "resume"]);
    expect(status({ state: "paused", reason: "a new one" }).commands).toEqual(["resume"]);
  });

  it("says why it failed and what to do", () => {
    const { detail, commands } = status({ state: "error", reason: "model", why: "401 from the provider" });
    expect(detail).toMatch(/^401 from the provider\. Check the model's name/);
    expect(commands).toContain("model");
  });

  it("tells a session whose process has ended from one that runs", () => {
    expect(status({}).title).toBe("Running");
    expect(status({ interrupted: true })).toMatchObject({ title: "Interrupted", commands: ["resume"] });
    expect(status({ state: "loading", interrupted: true })).toMatchObject({ title: "No task yet", commands: [] });
  });

  it("says why the agent declined", () => {
    expect(status({ state: "rejected", outputs: { reason: "It cannot be done" } }).detail).toMatch(
      /^It cannot be done\./,
    );
  });
});

describe("the progress of a running session", () => {
  const spent = { iterations: 2, cost: { usd: 0.5 } };

  it("is what it waits for before what it writes, and how long once that is long", () => {
    expect(progressText({ status: "reading the prompt", text: "abc" }, spent, 9)).toBe(
      "reading the prompt · 9 s · 2 steps · $0.5000",
    );
    expect(progressText({ status: "", text: "x".repeat(400) }, spent, 1)).toBe(
      "writing, about 100 tokens · 2 steps · $0.5000",
    );
    expect(progressText({ status: "", text: "" }, { iterations: 1, cost: { usd: 0 } }, 0)).toBe("1 step");
  });
});

describe("a card's first line", () => {
  it("says how a command ended only where that is remarkable", () => {
    expect(endingOf(printed(2, 1, "", 0))).toBeNull();
    expect(endingOf(printed(2, 1, "", 2))).toEqual({ tone: "bad", text: "exit 2" });
    expect(endingOf({ ...printed(2, 1, "", null), status: "background", job: "job 1" })?.text).toBe(
      "running in the background as job 1",
    );
  });

  it("spells out what would read differently", () => {
    expect(describeAction(event("FileReadAction", 1, { path: "a\u202eb", start: 2, end: 9 })).object).toBe(
      "a\\u202eb, lines 2–9",
    );
  });

  it("says what CodeNavAgent and other agents do with the code", () => {
    const search = event("RetrieveAction", 1, { query: "type: CLASS\n\ntax " });
    expect(describeAction(search)).toMatchObject({ verb: "Search the code", object: "type: CLASS; tax", body: "" });
    expect(describeAction(event("CodeSearchAction", 1, { query: "tax" })).object).toBe("tax");
    const cell = event("RunCodeAction", 1, { code: "tax(1)" });
    expect(describeAction(cell)).toMatchObject({ verb: "Run in the notebook", body: "tax(1)", language: "python" });
    const failed = event("RunCodeObservation", 2, { error: "TypeError", status: "done" });
    expect(endingOf(failed)).toEqual({ tone: "bad", text: "TypeError" });
    expect(describeAction(event("SummarizeCodeAction", 1, { code: "tax(1)" })).body).toBe("tax(1)");
  });

  it("of an action of the user's own has its name and fields", () => {
    const common = {
      id: 4,
      schema: 1,
      timestamp: "",
      source: "agent",
      cause: null,
      subtask: 0,
      thought: "Check first.",
    };
    const action = asEvent({ ...common, type: "RunTestsAction", completion: 3, tool_call_id: null, suite: "unit" });
    expect(isAction(action) && describeAction(action)).toMatchObject({
      verb: "RunTests",
      body: '{\n  "suite": "unit"\n}',
      language: "json",
    });
  });
});

describe("notices", () => {
  it("say what a remembered yes allows", () => {
    const answer = event("ApprovalEvent", 3, { action: 2, allowed: true, comment: "", rule: "command touch *" });
    expect(noticeOf(answer)).toEqual({ tone: "good", text: "You: yes, for this session: command touch *" });
  });

  it("say what was changed", () => {
    const limits = { iterations: 9, cost: null, tokens: null, time: null };
    const change = event("SettingsChanged", 3, { model: "openai:gpt", base_url: null, limits, confirmation: null });
    expect(noticeOf(change)?.text).toBe("Changed: model openai:gpt; limits 9 steps");
  });

  it("say what a hook did, and which never ran", () => {
    const gate = { hook: "tests", point: "before_finish", where: "sandbox", problem: "", output: "1 failed" } as const;
    const ran = event("HookEvent", 3, { ...gate, exit_code: 1, duration: 0.26, effect: "sent_back" });
    const text = "Hook tests (before finish): exit code 1, 0.3 s; the agent must go on\n1 failed";
    expect(noticeOf(ran)).toEqual({ tone: "warn", text });
    const slow = { ...ran, where: "host", exit_code: null, problem: "timeout", effect: "", output: "" } as const;
    expect(noticeOf(slow)?.text).toBe("Hook tests (on your machine, before finish): it took too long, 0.3 s");
    const long = noticeOf({ ...ran, exit_code: 0, effect: "", output: "line\n".repeat(99).trim() });
    expect([long?.tone, long?.text.split("\n")[7]]).toEqual(["quiet", "… 87 more lines …"]);
    expect(noticeOf(event("UnusedHooks", 4, { hooks: ["a", "b"] }))?.text).toMatch(/never ran in this session: a, b$/);
    expect(endingOf(event("HookRejectObservation", 5, { hook: "tests" }))?.text).toBe("refused");
  });

  it("warn where there is no sandbox", () => {
    const begun = event("SessionStarted", 1, { agent: "a", model: "m", sandbox: "none", settings: {} });
    expect(noticeOf(begun)?.tone).toBe("bad");
  });
});

describe("limits", () => {
  const used = { iterations: 5, cost: 0.5, tokens: 1000, time: 60 };
  const fields = { iterations: "", cost: "", tokens: "", time: "" };

  it("are as written; an empty field is none", () => {
    expect(limitsFrom({ ...fields, cost: " 1.5 ", tokens: "2,000" }, used)).toEqual({
      iterations: null,
      cost: 1.5,
      tokens: 2000,
      time: null,
    });
  });

  it.each([
    ["iterations", "5"],
    ["cost", "-1"],
    ["tokens", "many"],
    ["cost", "0,75"],
    ["cost", "1.234,56"],
  ])("of %s cannot be %s", (name, text) => {
    expect(() => limitsFrom({ ...fields, [name]: text }, used)).toThrow(/must be more|is not a number/);
  });
});

describe("delegates", () => {
  const subtask = (id: number, parent: number, cost: number) => ({ id, parent, cost }) as Subtask;

  it("stand below those that called them, whose cost has theirs in it", () => {
    const tree = treeOf(new Map([subtask(1, 0, 1), subtask(2, 1, 2), subtask(3, 99, 4)].map((one) => [one.id, one])));
    expect(tree.map(({ subtask: { id }, cost, children }) => [id, cost, children.length])).toEqual([
      [1, 3, 1],
      [3, 4, 0],
    ]);
  });
});

describe("what a screen reader is told", () => {
  it("is what is said to the user, not the commands nor what delegates say", () => {
    const events = [
      event("CmdRunAction", 1, { command: "ls" }),
      event("MessageAction", 2, { content: "Which one?" }),
      event("MessageAction", 3, { content: "inner", subtask: 1 }),
      event("AgentFinishAction", 4, { outputs: { message: "Done." } }),
    ];
    expect(announcement(events)).toBe("The agent says: Which one? Finished. Done.");
    expect(announcement(events.slice(0, 1))).toBe("");
  });
});
