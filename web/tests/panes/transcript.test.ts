import { expect, test } from "vitest";

import { asEvent, type JsonObject } from "../../src/events";
import { cardsOf } from "../../src/fold";
import { plain } from "../../src/wording/text";
import { transcript } from "../../src/panes/terminal/transcript";

const NONE = new Map<number, string>();

function event(type: string, id: number, more: JsonObject = {}) {
  return asEvent({ type, id, cause: null, subtask: 0, source: "agent", content: "", tail: "", size: 0, ...more });
}

const run = (id: number, command: string, more: JsonObject = {}) => event("CmdRunAction", id, { command, ...more });
const done = (id: number, cause: number, content: string, more: JsonObject = {}) =>
  event("CmdOutputObservation", id, { cause, content, exit_code: 0, status: "done", cwd: "/w", ...more });

function shown(...events: ReturnType<typeof event>[]) {
  return transcript(cardsOf(events), NONE).map((chunk) => plain(chunk.text));
}

test("commands are shown with the directory they ran in and what they printed", () => {
  expect(shown(run(1, "cd /w"), done(2, 1, ""), run(3, "ls\npwd"), done(4, 3, "a\n/w"))).toEqual([
    "$ cd /w\n",
    "/w $ ls\n> pwd\na\n/w\n",
  ]);
});

test("an unusual ending of a command is shown", () => {
  expect(shown(run(1, "false"), done(2, 1, "no", { exit_code: 1 }))).toEqual(["$ false\nno\n[exit 1]\n"]);
  expect(shown(run(1, "cat"), done(2, 1, "", { exit_code: null, status: "input" }))).toEqual([
    "$ cat\n[waiting for input]\n",
  ]);
  expect(shown(run(1, "x"), event("UserRejectObservation", 2, { cause: 1, content: "I need it" }))).toEqual([
    "$ x\nI need it\n",
  ]);
});

test("a command that waits for approval is not shown as if it ran", () => {
  const cards = cardsOf([run(1, "ls"), done(2, 1, "a"), run(3, "rm a")]);
  expect(transcript(cards, NONE, new Set([3])).map(({ id }) => id)).toEqual([1]);
  expect(transcript(cards, NONE).map(({ id }) => id)).toEqual([1, 3]);
});

test("while a command runs, what it printed so far is shown, and later only goes on", () => {
  const live = transcript(cardsOf([run(1, "make")]), new Map([[1, "half"]]));
  const ended = transcript(cardsOf([run(1, "make"), done(2, 1, "half done\n")]), NONE);
  expect(plain(live[0]?.text ?? "")).toBe("$ make\nhalf");
  expect(ended[0]?.text.startsWith(live[0]?.text ?? "-")).toBe(true);
});

test("output cannot rewrite the commands above it, nor switch the screen or the title", () => {
  const output = "\x1b[1A\x1b[2Ka\x1b[31mred\x1b[0m 10%\r\x1b[K100%\x1b[?1049h\x1b]0;title\x07\x08\x0b\n";
  const kept = "\x1b[2Ka\x1b[31mred\x1b[0m 10%\r\x1b[K100%\x08\n";
  const [chunk] = transcript(cardsOf([run(1, "ls"), done(2, 1, output)]), NONE);
  expect(chunk?.text.endsWith(`ls\n${kept}`)).toBe(true);
  const [live] = transcript(cardsOf([run(1, "ls\x1b[2K")]), new Map([[1, output]]));
  expect(live?.text.endsWith(`ls\\x1b[2K\n${kept}`)).toBe(true);
});

test("a delegate's shell is told from the session's own", () => {
  expect(shown(run(5, "a", { subtask: 4 }), run(6, "b"))).toEqual([
    "── the delegate's shell, since event 4 ──\n$ a\n",
    "── the session's own shell ──\n$ b\n",
  ]);
});

test("of a very long transcript the newest commands are kept", () => {
  const long = "x".repeat(150_000);
  const events = [1, 3, 5, 7].flatMap((id) => [run(id, `c${id}`), done(id + 1, id, long)]);
  expect(transcript(cardsOf(events), NONE).map((chunk) => chunk.id)).toEqual([3, 5, 7]);
});
