import { expect, test } from "vitest";
import { filesOf } from "../../src/components/diff/patch";
import { blocksOf, hunksOf, pairs } from "../../src/components/diff/rows";

function linesOf(...lines: string[]) {
  const old = lines.filter((line) => /^[- ]/.test(line)).length;
  const now = lines.filter((line) => /^[+ ]/.test(line)).length;
  return filesOf([`@@ -1,${old} +1,${now} @@`, ...lines, ""].join("\n"))[0]!.lines;
}

function shown(...lines: string[]) {
  return pairs(linesOf(...lines)).map(({ left, right, at }) => [at, left?.text ?? null, right?.text ?? null]);
}

test("deleted lines stand beside the added lines that follow them", () => {
  expect(shown(" a", "-b", "-c", "+B", " d", "+e")).toEqual([
    [0, "@@ -1,4 +1,4 @@", "@@ -1,4 +1,4 @@"],
    [1, "a", "a"],
    [2, "b", "B"],
    [3, "c", null],
    [5, "d", "d"],
    [6, null, "e"],
  ]);
});

test("lines deleted after added ones begin new rows", () => {
  expect(shown("+a", "-b", "+c").slice(1)).toEqual([
    [1, null, "a"],
    [2, "b", "c"],
  ]);
});

test("a note stands on the side of the line above it", () => {
  const note = "\\ No newline at end of file";
  expect(shown("-a", note, "+b", note).slice(1)).toEqual([
    [1, "a", "b"],
    [2, note, note],
  ]);
  expect(shown(" a", note).slice(1)).toEqual([
    [1, "a", "a"],
    [2, note, note],
  ]);
  expect(shown("-a", "+b", note).slice(1)).toEqual([
    [1, "a", "b"],
    [2, null, note],
  ]);
});

test("every row of a file has a number of its own, in both views", () => {
  const lines = linesOf(...Array.from({ length: 300 }, (_, index) => ["-x", "-y", "+z", " s"][index % 4]!));
  for (const split of [false, true]) {
    const rows = blocksOf(hunksOf(lines), lines.length, split).flatMap((block) => block.rows);
    expect(new Set(rows.map(({ at }) => at)).size).toBe(rows.length);
    expect(new Set(rows.flatMap(({ left, right }) => [left, right]).filter(Boolean)).size).toBe(lines.length);
  }
});

test("a block has rows of one hunk, and no more lines than are asked for", () => {
  const [file] = filesOf(
    "diff --git a/x b/x\nold mode 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n",
  );
  const hunks = hunksOf(file!.lines);
  expect(hunks.map((hunk) => hunk.map(({ text }) => text))).toEqual([
    ["old mode 100644"],
    ["@@ -1 +1 @@", "a", "b"],
    ["@@ -9 +9 @@", "c", "d"],
  ]);
  const blocks = blocksOf(hunks, 5, false);
  expect(blocks.map(({ rows }) => rows.map(({ at }) => at))).toEqual([[0], [1, 2, 3], [4]]);
  expect(blocks.map(({ hunk }) => hunk)).toEqual(hunks);
});
