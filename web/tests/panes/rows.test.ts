import { expect, test } from "vitest";

import { move, rows } from "../../src/panes/files/rows";
import type { FileEntry } from "../../generated/types";

const entry = (name: string, kind: FileEntry["kind"] = "file"): FileEntry => ({ name, kind, size: 1 });
const DIRECTORIES = new Map([
  ["", [entry("src", "dir"), entry("README.md")]],
  ["src", [entry("deep", "dir"), entry("main.py")]],
  ["src/deep", [entry("x.py")]],
]);

const shown = (...open: string[]) => rows(DIRECTORIES, new Set(open));

test("the rows are those of unfolded directories, each below its own", () => {
  expect(shown().map((row) => row.path)).toEqual(["src", "README.md"]);
  expect(shown("src", "src/deep").map((row) => [row.level, row.path])).toEqual([
    [1, "src"],
    [2, "src/deep"],
    [3, "src/deep/x.py"],
    [2, "src/main.py"],
    [1, "README.md"],
  ]);
  expect(
    shown("src/deep").map((row) => row.path),
    "a directory in a folded one is not seen",
  ).toEqual(["src", "README.md"]);
});

test("the arrow keys go through the tree, fold and unfold", () => {
  const all = shown("src", "src/deep");
  expect(move(all, 0, "ArrowDown")).toEqual({ to: 1 });
  expect(move(all, 0, "ArrowUp")).toEqual({ to: 0 });
  expect(move(all, 0, "ArrowRight"), "into an open directory").toEqual({ to: 1 });
  expect(move(shown(), 0, "ArrowRight")).toEqual({ unfold: "src" });
  expect(move(all, 1, "ArrowLeft")).toEqual({ fold: "src/deep" });
  expect(move(all, 3, "ArrowLeft"), "from a file to its directory").toEqual({ to: 0 });
  expect(move(all, 4, "ArrowLeft")).toBeNull();
  expect(move(all, 4, "ArrowRight"), "a file has nothing to unfold").toBeNull();
  expect(move(all, 2, "End")).toEqual({ to: 4 });
  expect(move([], 0, "ArrowDown")).toBeNull();
});
