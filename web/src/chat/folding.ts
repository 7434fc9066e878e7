/** Folds text by the rows that it takes on the screen, not by its lines. */

import { createContext } from "react";
import { COLOUR, plain } from "../wording/text";

interface FoldedText {
  head: string;
  tail: string;
  /** The lines between head and tail. */
  omitted: number;
  /** Whether a line of the head or tail is cut. */
  cut: boolean;
}

/** The most rows of a line; a longer line is cut to one row. */
const LONGEST = 4;
/** Rows that a fold must save: a button instead of fewer would save nothing. */
const SAVED = 3;
/** Pixels that the padding, the border and the scrollbar take from a row. */
const EDGES = 64;
/** The width of a monospaced character, in pixels; about the same in all fonts. */
const CHARACTER = 7.8;
/** The most pixels that the text of the conversation is wide; --measure in the styles. */
const MEASURE = 880;

/** The characters of a row of code or output. */
export const Columns = createContext(90);

export function columnsOf(width: number): number {
  return Math.max(20, Math.floor((Math.min(width, MEASURE) - EDGES) / CHARACTER));
}

/** Keep `rows` rows of a text, half of them from its end unless `fromStart`; its lines may have colours. */
export function foldText(text: string, columns: number, rows: number, fromStart = false): FoldedText {
  const lines = text.split("\n");
  const heights = lines.map((line) => heightOf(line, columns));
  const long = heights.map((height) => height > LONGEST);
  const shown = heights.map((height, index) => (long[index] ? 1 : height));
  const excess = shown.reduce((sum, height) => sum + height, 0) - rows;
  const join = (from: number, to: number) =>
    lines
      .slice(from, to)
      .map((line, index) => (long[from + index] ? `${plain(line).slice(0, columns - 1)}…` : line))
      .join("\n");
  if (excess <= SAVED) return { head: join(0, lines.length), tail: "", omitted: 0, cut: long.includes(true) };
  const first = fit(shown, fromStart ? rows : Math.ceil(rows / 2));
  const last = fromStart ? 0 : Math.min(fit(shown.toReversed(), Math.floor(rows / 2)), lines.length - first);
  const end = lines.length - last;
  return {
    head: join(0, first),
    tail: last ? join(end, lines.length) : "",
    omitted: end - first,
    cut: [...long.slice(0, first), ...long.slice(end)].includes(true),
  };
}

/** The text of the button that unfolds. */
export function moreText({ omitted }: Pick<FoldedText, "omitted">): string {
  return omitted > 0 ? `${omitted} more line${omitted === 1 ? "" : "s"}` : "More";
}

function heightOf(line: string, columns: number): number {
  // Most lines are short, and have no colours to leave out.
  const length = line.length <= columns ? line.length : line.replace(COLOUR, "").length;
  return Math.max(1, Math.ceil(length / columns));
}

/** The number of first lines that fit into `rows`; at least one. */
function fit(heights: number[], rows: number): number {
  let sum = 0;
  const count = heights.findIndex((height) => (sum += height) > rows);
  return Math.max(1, count < 0 ? heights.length : count);
}
