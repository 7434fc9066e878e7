import { expect, test } from "vitest";

import { patches } from "../../src/panes/changes/patches";
import type { FileChange } from "../../generated/types";

const file = (path: string, kind: FileChange["kind"], binary = false): FileChange => ({
  path,
  kind,
  binary,
  added: 1,
  deleted: 0,
});

const ADDED = "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+diff --git a/x b/x\n";
const BINARY = "Binary file b is modified: 3 bytes -> 4 bytes\n";
const DELETED = "diff --git a/c b/c\ndeleted file mode 120000\n--- a/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-to\n";
const AGAIN = "diff --git a/c b/c\nnew file mode 100644\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+text\n";
const MODE = "diff --git a/d b/d\nold mode 100644\nnew mode 100755\n";

test("each file has its own part, whatever its lines look like", () => {
  const files = [file("a", "added"), file("b", "modified", true), file("c", "type"), file("d", "mode")];
  expect(patches(files, ADDED + BINARY + DELETED + AGAIN + MODE)).toEqual([ADDED, BINARY, DELETED + AGAIN, MODE]);
});

test("a line begins after a line feed only", () => {
  const text = ["\r", "\u2028", "\u2029"].map((end) => `+${end}diff --git a/x b/x${end}Binary file x\n`).join("");
  const odd = `diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1,3 @@\n${text}`;
  expect(patches([file("a", "modified"), file("d", "mode")], odd + MODE)).toEqual([odd, MODE]);
});

test("no changes, no patches", () => {
  expect(patches([], "")).toEqual([]);
});
