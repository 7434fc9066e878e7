import { expect, test } from "vitest";

import { pieces, plain } from "../../src/panes/common/ansi";

test("colours become classes until they are reset", () => {
  expect(pieces("a \x1b[1;31mred\x1b[0m b")).toEqual([
    { text: "a ", style: "" },
    { text: "red", style: "ansi-bold ansi-red" },
    { text: " b", style: "" },
  ]);
});

test("bright, indexed and true colours do not spill their numbers into the text", () => {
  expect(pieces("\x1b[92mok\x1b[38;5;1mno\x1b[38;2;1;2;3mrgb\x1b[48;5;4m on blue")).toEqual([
    { text: "ok", style: "ansi-green" },
    { text: "no", style: "ansi-red" },
    { text: "rgb", style: "" },
    { text: " on blue", style: "" },
  ]);
});

test("what moves the cursor or names the window is left out", () => {
  expect(plain("\x1b[2K\x1b]0;title\x07done\x1b[?25h")).toBe("done");
});
