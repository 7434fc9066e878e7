import { expect, test } from "vitest";
import { indentation, lineBreak, textOf } from "../../src/panes/files/edits";

test.each([
  ["", "\n"],
  ["one line", "\n"],
  ["a\nb\n", "\n"],
  ["a\r\nb\r\n", "\r\n"],
  ["a\r\nb", "\r\n"],
  ["a\r\nb\n", "\n"],
  ["a\rb", "\n"],
])("the line break of %j is %j", (text, expected) => {
  expect(lineBreak(text)).toBe(expected);
});

test("a text encodes to the bytes it was read from, with its byte order mark; other bytes are no text", () => {
  const bytes = new TextEncoder().encode("\uFEFFäöü\r\n");
  expect(new TextEncoder().encode(textOf(bytes) ?? "")).toEqual(bytes);
  expect(textOf(new Uint8Array([0x61, 0xff]))).toBeNull();
});

test.each([
  ["a\n\tb\n    c", "\t"],
  ["a\n  b\n    c", "  "],
  ["/**\n * a\n */\nx {\n  y", "  "],
  ["a\n\n   \nb", "    "],
])("%j is indented by %j", (text, expected) => {
  expect(indentation(text)).toBe(expected);
});
