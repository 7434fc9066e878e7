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

/** A writer, and the pieces that its terminal got: like xterm's, it has shown a piece a little later. */
function writing() {
  const pieces: string[] = [];
  const xterm = {
    write: (piece: string, shown: () => void) => {
      pieces.push(piece);
      setTimeout(shown, 5);
    },
  } as Terminal;
  return { writer: new Writer(xterm), pieces };
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

test("a stopped writer writes no more", () => {
  const { writer, pieces } = writing();
  writer.add("a".repeat(10_000));
  writer.replace("b");
  writer.stop();
  vi.runAllTimers();
  expect(pieces).toHaveLength(1);
});
