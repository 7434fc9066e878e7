/** The rows of the conversation: its entries, and below them the replies that are being written. */

import type { Entry } from "./entries";

export interface LiveRow {
  kind: "live";
  key: string;
  subtask: number;
  text: string;
}
export type Row = Entry | LiveRow;

/** Constrained models write JSON, which nobody wants to read on its way: of that there is no row. */
export function rowsOf(entries: readonly Entry[], texts: ReadonlyMap<number, string>): Row[] {
  const rows: Row[] = [...entries];
  for (const [subtask, text] of texts) {
    if (text.trim() && !text.trimStart().startsWith("{"))
      rows.push({ kind: "live", key: `live-${subtask}`, subtask, text });
  }
  return rows;
}

/** The row of an event, or where it has none of its own the next one; null where nothing follows. */
export function rowOf(rows: readonly Row[], event: number): Row | null {
  return rows.find((row) => row.kind !== "live" && row.kind !== "heading" && row.id >= event) ?? null;
}
