/** What two sessions of one family have in common. */

import type { SessionRow } from "../../../generated/types";

/** The last event that both sessions have, 0 where they share none. */
export function sharedUntil(family: readonly SessionRow[], one: string, other: string): number {
  const ours = ancestry(family, one);
  for (const [id, until] of ancestry(family, other)) {
    const ourUntil = ours.get(id);
    if (ourUntil !== undefined) return Math.min(ourUntil, until);
  }
  return 0;
}

/** The session and those it was forked from, nearest first, each with the last event that it shares with it. */
function ancestry(family: readonly SessionRow[], id: string): Map<string, number> {
  const known = new Map(family.map((row) => [row.id, row]));
  const found = new Map<string, number>();
  let until = Infinity;
  for (let row = known.get(id); row && !found.has(row.id); row = known.get(row.parent ?? "")) {
    until = Math.min(until, row.head);
    found.set(row.id, until);
    until = Math.min(until, row.parent_event);
  }
  return found;
}
