import { expect, test } from "vitest";
import { filesOf, hunkAt, shownText } from "../../src/components/diff/patch";

test("a patch is read file by file, with the numbers of its lines", () => {
  const files = filesOf(
    "diff --git a/one.py b/one.py\n--- a/one.py\n+++ b/one.py\n@@ -1,2 +1,3 @@\n same\n-old\n+new\n+more\n" +
      "diff --git a/two b/two\nnew file mode 100644\n--- /dev/null\n+++ b/two\n@@ -0,0 +1 @@\n+first\n",
  );
  expect(files.map(({ path, added, deleted }) => [path, added, deleted])).toEqual([
    ["one.py", 2, 1],
    ["two", 1, 0],
  ]);
  expect(files[0]?.lines.map((line) => [line.kind, line.old, line.new])).toEqual([
    ["hunk", null, null],
    ["same", 1, 1],
    ["deleted", 2, null],
    ["added", null, 2],
    ["added", null, 3],
  ]);
});

test.each([
  ['"a/back\\\\slash"', '"b/back\\\\slash"', "back\\slash"],
  [
    '"a/\\"\\t\\033\\342\\200\\256\\357\\273\\277ü"',
    '"b/\\"\\t\\033\\342\\200\\256\\357\\273\\277ü"',
    '"\t\x1b\u202e\ufeffü',
  ],
  ["a/two b/words", "b/two b/words", "two b/words"],
])("the names %s and %s are of one path", (old, now, path) => {
  const header = `diff --git ${old} ${now}\n`;
  const hunk = "@@ -1 +1 @@\n-1\n+2\n";
  const patches = [`--- ${old}\n+++ ${now}\n${hunk}`, `${header}--- ${old}\t\n+++ ${now}\t\n${hunk}`];
  const deletion = `${header}deleted file mode 100644\n--- ${old}\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n`;
  for (const patch of [...patches, deletion, `${header}old mode 100644\nnew mode 100755\n`]) {
    expect(filesOf(patch).map((file) => file.path)).toEqual([path]);
  }
});

test("lines that look like headers are changes where a hunk has room for them", () => {
  const [file] = filesOf("--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n--- a/y\n+++ b/y\n");
  expect(file?.path).toBe("x");
  expect(file?.lines.slice(1).map(({ kind, text }) => [kind, text])).toEqual([
    ["deleted", "-- a/y"],
    ["added", "++ b/y"],
  ]);
});

test("an edit without a header is a file without a path", () => {
  expect(filesOf("@@ -3 +3 @@\n-a\n+b\n")).toMatchObject([{ path: "", added: 1, deleted: 1 }]);
  expect(filesOf("")).toEqual([]);
});

test("a hunk is given back exactly as the patch has it", () => {
  const hunks = ["@@ -1 +1 @@ def f\n-a\r\n+b\n\\ No newline at end of file\n", "@@ -9,2 +9 @@\n same\n-\n"];
  const [file] = filesOf(`diff --git a/x b/x\nold mode 100644\nnew mode 100755\n--- a/x\n+++ b/x\n${hunks.join("")}`);
  const headers = file!.lines.flatMap(({ kind }, at) => (kind === "hunk" ? [at] : []));
  expect(headers.map((at) => hunkAt(file!, at))).toEqual(hunks);
});

test("a line is drawn with what would hide or reorder its text, and given back as it is", () => {
  const hunk = '@@ -1 +1 @@\n-a\r\n+if role != "user\u202e \u2066# admin\u2069 \u2066\u200b":\r\n';
  const [file] = filesOf(`--- a/x\n+++ b/x\n${hunk}`);
  expect(file!.lines.map(shownText)).toEqual([
    "@@ -1 +1 @@",
    "a",
    'if role != "user\\u202e \\u2066# admin\\u2069 \\u2066\\u200b":',
  ]);
  expect(hunkAt(file!, 0)).toBe(hunk);
});
