// The rows of the list of sessions: those that need the user, then the others, both newest first.

import type { SessionRow } from "../../generated/types";
import { rowNeedsUser } from "../steering/attention";

/** Whether the rows hold all sessions that need the user; `more` tells whether the list has more pages. */
export function hasAllWaiting(rows: readonly SessionRow[], more: boolean): boolean {
  return !more || rows.some((row) => !rowNeedsUser(row));
}

/** The rows with those of the next page. */
export function withPage(rows: readonly SessionRow[], page: readonly SessionRow[]): SessionRow[] {
  // A session that changed its state between the pages may be on both.
  const fresh = new Map(page.map((row) => [row.id, row]));
  return [...rows.filter(({ id }) => !fresh.has(id)), ...page].sort(byPlace);
}

/** The rows with one that is new or has changed, unless its place is on a page that is not loaded. */
export function withRow(rows: readonly SessionRow[], row: SessionRow, more: boolean): SessionRow[] {
  const others = rows.filter(({ id }) => id !== row.id);
  if (row.archived) return others;
  const last = rows.at(-1);
  if (more && last !== undefined && byPlace(last, row) < 0) return others;
  return [...others, row].sort(byPlace);
}

function byPlace(a: SessionRow, b: SessionRow): number {
  const waits = Number(rowNeedsUser(b)) - Number(rowNeedsUser(a));
  return waits || Number(a.created < b.created) - Number(a.created > b.created);
}
