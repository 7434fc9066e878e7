import { expect, test } from "vitest";

import { ansiSpans } from "../src/wording/ansi";
import { plain } from "../src/wording/text";

test("colours become classes until they are reset", () => {
  expect(ansiSpans("a \x1b[1;31mred\x1b[0m b")).toEqual([
    { text: "a ", className: "" },
    { text: "red", className: "ansi-bold ansi-red" },
    { text: " b", className: "" },
  ]);
});

test("bright, indexed and true colours do not spill their numbers into the text", () => {
  expect(ansiSpans("\x1b[92mok\x1b[38;5;1mno\x1b[38;2;1;2;3mrgb\x1b[48;5;4m on blue")).toEqual([
    { text: "ok", className: "ansi-green" },
    { text: "no", className: "ansi-red" },
    { text: "rgb", className: "" },
    { text: " on blue", className: "" },
  ]);
});

test("sequences that move the cursor or set the title are removed", () => {
  const text = "\x1b[2K\x1b]0;title\x07done\x1b[?25h";
  expect(plain(text)).toBe("done");
  expect(ansiSpans(text)).toEqual([{ text: "done", className: "" }]);
});

test("an overwritten line is removed without its colours, and control characters are spelled out", () => {
  expect(ansiSpans("\x1b[32m10%\r\x1b[0m100%\r\nbell\x07 \u202e")).toEqual([
    { text: "100%\nbell\\x07 \\u202e", className: "" },
  ]);
});

test("colours with colons, and of inverted text, are kept", () => {
  expect(ansiSpans("\x1b[38:5:1mred\x1b[0m\x1b[7;32mgreen")).toEqual([
    { text: "red", className: "ansi-red" },
    { text: "green", className: "ansi-green" },
  ]);
});
