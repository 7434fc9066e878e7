/** The events that two sessions of one family share. */

import type { SessionRow } from "../../../generated/types";

/** Return the last event that both sessions have; 0 if they share none. */
export function sharedUntil(family: readonly SessionRow[], own: string, other: string): number {
  const ours = ancestry(family, own);
  for (const [id, until] of ancestry(family, other)) {
    const ourUntil = ours.get(id);
    if (ourUntil !== undefined) return Math.min(ourUntil, until);
  }
  return 0;
}

/** Return the session and its ancestors, nearest first, with the last event of each that it shares. */
function ancestry(family: readonly SessionRow[], id: string): Map<string, number> {
  const known = new Map(family.map((row) => [row.id, row]));
  const ancestors = new Map<string, number>();
  let until = Infinity;
  for (let row = known.get(id); row && !ancestors.has(row.id); row = known.get(row.parent ?? "")) {
    until = Math.min(until, row.head);
    ancestors.set(row.id, until);
    until = Math.min(until, row.parent_event);
  }
  return ancestors;
}
