import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { ansiSpans } from "../src/wording/ansi";
import { contrast, GROUNDS, paletteColour, type Rgb } from "../src/wording/colours";
import { plain } from "../src/wording/text";

function coloursIn(css = ""): Rgb[] {
  return [...css.matchAll(/rgb\((\d+) (\d+) (\d+)\)/g)].map(([, ...parts]) => parts.map(Number) as unknown as Rgb);
}

test("colours become classes until they are reset", () => {
  expect(ansiSpans("a \x1b[1;31mred\x1b[0m b")).toEqual([
    { text: "a ", className: "" },
    { text: "red", className: "ansi-bold ansi-red" },
    { text: " b", className: "" },
  ]);
});

test("bright, indexed and true colours do not spill their numbers into the text", () => {
  const spans = ansiSpans("\x1b[92mok\x1b[38;5;1mno\x1b[38;2;1;2;3mrgb\x1b[48;5;4m on blue");
  expect(spans.map(({ text, className }) => [text, className])).toEqual([
    ["ok", ""],
    ["no", "ansi-red"],
    ["rgb", ""],
    [" on blue", ""],
  ]);
  expect(spans.map(({ style }) => style?.backgroundColor)).toEqual([
    undefined,
    undefined,
    undefined,
    "rgb(36 114 200)",
  ]);
});

test("each of the 256 colours and true colours is readable on the page in both themes", () => {
  const codes = [
    ...Array.from({ length: 256 }, (_, number) => `38;5;${number}`),
    ...[0, 77, 128, 200, 255].flatMap((red) => [0, 99, 255].map((green) => `38;2;${red};${green};${255 - red}`)),
    ...Array.from({ length: 8 }, (_, number) => String(90 + number)),
  ];
  for (const code of codes) {
    const [span] = ansiSpans(`\x1b[${code}mx`);
    if (span?.className) continue; // the theme's own
    const [light, dark] = coloursIn(span?.style?.color);
    expect(contrast(light!, GROUNDS.light), `${code} in the light theme`).toBeGreaterThanOrEqual(4.5);
    expect(contrast(dark!, GROUNDS.dark), `${code} in the dark theme`).toBeGreaterThanOrEqual(4.5);
  }
});

test("a background is shown as it is, with readable text", () => {
  const texts = ["", "97;", "30;", "38;5;208;", "38;2;9;9;9;"];
  for (const text of texts) {
    for (let ground = 0; ground < 256; ground += 1) {
      const style = ansiSpans(`\x1b[${text}48;5;${ground}mx`)[0]?.style;
      expect(coloursIn(style?.backgroundColor)).toEqual([paletteColour(ground)]);
      const [colour] = coloursIn(style?.color);
      expect(contrast(colour!, paletteColour(ground)), `${text}48;5;${ground}`).toBeGreaterThanOrEqual(4.5);
    }
  }
});

test("colours that are readable stay as they are, and bright ones are not the normal ones", () => {
  expect(ansiSpans("\x1b[38;2;120;0;0mx")[0]?.style?.color).toMatch(/^light-dark\(rgb\(120 0 0\), /);
  expect(ansiSpans("\x1b[38;5;226mx")[0]?.style?.color).toMatch(/, rgb\(255 255 0\)\)$/);
  const tokens = readFileSync(new URL("../src/styles/tokens.css", import.meta.url), "utf8");
  const normal = new Set(
    tokens.match(/--(?:ansi-|bad:|good:|warn:|accent:|keyword:).*/g)?.flatMap((line) => line.match(/#\w+/g)),
  );
  for (let code = 90; code < 98; code += 1) {
    const bright = coloursIn(ansiSpans(`\x1b[${code}mx`)[0]?.style?.color);
    expect(bright).toHaveLength(2);
    for (const colour of bright) {
      const hex = `#${colour.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
      expect(normal).not.toContain(hex);
    }
  }
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

test("a colour after a true colour is its own", () => {
  const spans = ansiSpans("\x1b[38;2;250;250;120ma\x1b[0m\x1b[38;5;21mb\x1b[91mc\x1b[48;2;1;2;3md\x1b[49;41me");
  expect(spans.map(({ style }) => style)).toEqual(
    ["38;2;250;250;120", "38;5;21", "91", "91;48;2;1;2;3", "91;41"].map(
      (code) => ansiSpans(`\x1b[${code}mx`)[0]?.style,
    ),
  );
});

test("colours with colons are kept, and inverted text has a background", () => {
  expect(ansiSpans("\x1b[38:5:1mred\x1b[0m\x1b[7;32mgreen")).toEqual([
    { text: "red", className: "ansi-red" },
    { text: "green", className: "", style: { color: "rgb(0 0 0)", backgroundColor: "rgb(13 188 121)" } },
  ]);
});
