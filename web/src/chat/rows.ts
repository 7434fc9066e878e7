/** The rows of the conversation: its entries, then the replies being written. */

import type { Entry } from "./entries";

interface LiveRow {
  kind: "live";
  key: string;
  subtask: number;
  text: string;
}
export type Row = Entry | LiveRow;

/** The JSON that constrained models write gets no row. */
export function rowsOf(entries: readonly Entry[], texts: ReadonlyMap<number, string>): Row[] {
  const rows: Row[] = [...entries];
  for (const [subtask, text] of texts) {
    if (text.trim() && !text.trimStart().startsWith("{"))
      rows.push({ kind: "live", key: `live-${subtask}`, subtask, text });
  }
  return rows;
}

/** Return the row of an event, or the next row if it has none; null if none follows. */
export function rowOf(rows: readonly Row[], event: number): Row | null {
  return rows.find((row) => row.kind !== "live" && row.kind !== "heading" && row.id >= event) ?? null;
}
