import { expect, test } from "vitest";

import { joined, kindOf } from "../../src/panes/files/kind";

test("pictures and texts are shown, the rest is for download", () => {
  expect(["text/plain; charset=utf-8", "image/png", "application/octet-stream"].map(kindOf)).toEqual([
    "text",
    "picture",
    "binary",
  ]);
});

test("paths are below the workspace", () => {
  expect([joined("", "a"), joined("a/b", "c")]).toEqual(["a", "a/b/c"]);
});
