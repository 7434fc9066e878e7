import { expect, test } from "vitest";
import { filesOf } from "../../src/components/diff/patch";
import { type LineComment, messageOf, withComment, writtenIn } from "../../src/panes/changes/comments";

const PATCH = "--- a/poem.txt\n+++ b/poem.txt\n@@ -1,3 +1,3 @@\n roses\n-are red\n+are pink\n end\n";
const [file] = filesOf(PATCH);
const line = (text: string) => file!.lines.find((line) => line.text === text)!;

test("the message names each line, quotes it, and goes from the first line to the last", () => {
  let list: LineComment[] = withComment([], "poem.txt", line("are pink"), "  Crimson, please.\n");
  list = withComment(list, "poem.txt", line("roses"), "Which ones?");
  list = withComment(list, "a.py", line("are red"), "Why?");
  list = withComment(list, "a.py", null, "Too long.");
  expect(messageOf(list)).toBe(
    [
      "Comments on your changes:",
      "a.py:\nToo long.",
      "a.py, deleted line 2:\n> are red\nWhy?",
      "poem.txt, line 1:\n> roses\nWhich ones?",
      "poem.txt, line 2:\n> are pink\nCrimson, please.",
    ].join("\n\n"),
  );
});

test("a second comment on a line replaces the first, and an empty one removes it", () => {
  const first = withComment([], "poem.txt", line("are pink"), "one");
  const second = withComment(first, "poem.txt", line("are pink"), "two");
  expect(second.map(({ text }) => text)).toEqual(["two"]);
  expect(withComment(second, "poem.txt", line("are red"), "other")).toHaveLength(2);
  expect(withComment(second, "poem.txt", line("are pink"), "  ")).toEqual([]);
});

test("a comment that is being written is kept for its session", () => {
  writtenIn("one").set("poem.txt 2", "Crims");
  expect([...writtenIn("one").values()]).toEqual(["Crims"]);
  expect(writtenIn("another").size).toBe(0);
});
