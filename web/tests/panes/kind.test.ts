import { expect, test } from "vitest";

import { below, shown } from "../../src/panes/files/kind";

test("pictures and texts are shown, the rest is for download", () => {
  expect(["text/plain; charset=utf-8", "image/png", "application/octet-stream"].map(shown)).toEqual([
    "text",
    "picture",
    "neither",
  ]);
});

test("paths are below the workspace", () => {
  expect([below("", "a"), below("a/b", "c")]).toEqual(["a", "a/b/c"]);
});
