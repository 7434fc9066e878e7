import type { Terminal } from "@xterm/xterm";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Writer } from "../../src/panes/terminal/writer";

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("window", globalThis);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/**
 * A writer, the pieces that its terminal got, and whether screen readers saw each: like xterm's, it has shown a piece a
 * little later.
 */
function writing() {
  const pieces: string[] = [];
  const seen: boolean[] = [];
  const options = { screenReaderMode: true };
  const xterm = {
    options,
    write: (piece: string, shown: () => void) => {
      pieces.push(piece);
      seen.push(options.screenReaderMode);
      setTimeout(shown, 5);
    },
  } as Terminal;
  return { writer: new Writer(xterm), pieces, seen, options };
}

test("much text is written in order, in short pieces, one after the other", () => {
  const { writer, pieces } = writing();
  const text = Array.from({ length: 5000 }, (_, number) => `line ${number}\n`).join("");
  writer.add(text.slice(0, 30_000));
  writer.add(text.slice(30_000));
  expect(pieces).toHaveLength(1);
  vi.runAllTimers();
  expect(pieces.join("")).toBe(text);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(5000);
});

test("a text that replaces all comes once, with what follows it, and what waited is not written", () => {
  const { writer, pieces } = writing();
  writer.add("a".repeat(10_000));
  writer.replace("first");
  writer.replace("second");
  writer.add(" and more");
  vi.runAllTimers();
  expect(pieces.slice(1)).toEqual(["\x1bcsecond and more"]);
  writer.add("!");
  expect(pieces.at(-1)).toBe("!");
});

test("screen readers get a text that replaces all when it is whole, and what follows at once", () => {
  const { writer, seen, options } = writing();
  writer.replace("a".repeat(10_000));
  vi.runAllTimers();
  expect(seen).toEqual([false, false, false]);
  expect(options.screenReaderMode).toBe(true);
  writer.add("more");
  expect(seen.at(-1)).toBe(true);
});

test("a stopped writer writes no more", () => {
  const { writer, pieces } = writing();
  writer.add("a".repeat(10_000));
  writer.replace("b");
  writer.stop();
  vi.runAllTimers();
  expect(pieces).toHaveLength(1);
});
