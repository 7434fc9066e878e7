/** Which sessions of a family are compared, and the events that two of them share. */

import type { SessionRow } from "../../../generated/types";

/** The origin of this session, otherwise its newest fork. */
export function nearest(others: readonly SessionRow[], own: SessionRow | undefined): SessionRow | undefined {
  const forks = others.filter((row) => row.parent === own?.id).sort((a, b) => (a.created < b.created ? 1 : -1));
  return others.find((row) => row.id === own?.parent) ?? forks[0] ?? others[0];
}

/** Return the number of events after those of a page. */
export function restOf({ events, head }: { events: readonly { id: number }[]; head: number }): number {
  return head - (events.at(-1)?.id ?? head);
}

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
