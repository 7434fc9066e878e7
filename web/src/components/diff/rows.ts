// Arranges the lines of a file's changes in rows, and the rows in blocks that are drawn and coloured one at a time.

import type { DiffLine } from "./patch";

/** A row has the old line on the left, the new one on the right; the same line on both if it is not a change. */
export interface Row {
  left: DiffLine | null;
  right: DiffLine | null;
  /** The index of the row's first line in the file. */
  at: number;
}

export interface Block {
  hunk: readonly DiffLine[];
  rows: readonly Row[];
}

/** The most rows of a block. */
const ROWS = 50;

/** Return the lines of each hunk, with its header; what stands before the first header is a hunk of its own. */
export function hunksOf(lines: readonly DiffLine[]): DiffLine[][] {
  const hunks: DiffLine[][] = [];
  for (const line of lines) {
    const hunk = hunks.at(-1);
    if (hunk === undefined || line.kind === "hunk") hunks.push([line]);
    else hunk.push(line);
  }
  return hunks;
}

/** Return the first `count` lines as blocks, each of one hunk. */
export function blocksOf(hunks: readonly DiffLine[][], count: number, split: boolean): Block[] {
  const blocks: Block[] = [];
  let from = 0;
  for (const hunk of hunks) {
    if (from >= count) break;
    const shown = hunk.slice(0, count - from);
    const rows = split
      ? pairs(shown, from)
      : shown.map((line, index) => ({ left: line, right: line, at: from + index }));
    for (let row = 0; row < rows.length; row += ROWS) blocks.push({ hunk, rows: rows.slice(row, row + ROWS) });
    from += hunk.length;
  }
  return blocks;
}

/** Return the lines of a hunk as rows: deleted lines beside the added ones that follow them. */
export function pairs(lines: readonly DiffLine[], from = 0): Row[] {
  const rows: Row[] = [];
  let left: DiffLine[] = [];
  let right: DiffLine[] = [];
  let start = from;
  const flush = (): void => {
    for (let row = 0; row < Math.max(left.length, right.length); row++) {
      rows.push({ left: left[row] ?? null, right: right[row] ?? null, at: start + row });
    }
    left = [];
    right = [];
  };
  lines.forEach((line, index) => {
    // A note is about the line above it.
    const side = line.kind === "note" ? (right.length > 0 ? "added" : left.length > 0 ? "deleted" : "") : line.kind;
    if (side === "added") {
      if (left.length + right.length === 0) start = from + index;
      right.push(line);
    } else if (side === "deleted") {
      if (right.length > 0) flush();
      if (left.length === 0) start = from + index;
      left.push(line);
    } else {
      flush();
      rows.push({ left: line, right: line, at: from + index });
    }
  });
  flush();
  return rows;
}
