// How diffs look: unified or split, with long lines wrapped or not, as the user chose.

import { useSyncExternalStore } from "react";
import { usePhone } from "../../media";

export interface Look {
  split: boolean;
  wrap: boolean;
}

const KEYS = { split: "handiwork.diff.split", wrap: "handiwork.diff.wrap" };

const listeners = new Set<() => void>();

/** Return the look of a diff; one that is `narrow` has no room for a split view. */
export function useLook(narrow = false): Look {
  const phone = usePhone();
  const split = useChoice("split") === "yes" && !phone && !narrow;
  const wrap = useChoice("wrap");
  // Unwrapped lines on the left would push the right side out of view.
  return { split, wrap: split || (wrap === null ? phone : wrap === "yes") };
}

export function choose(part: keyof Look, chosen: boolean): void {
  localStorage.setItem(KEYS[part], chosen ? "yes" : "no");
  for (const listener of listeners) listener();
}

function useChoice(part: keyof Look): string | null {
  return useSyncExternalStore(subscribe, () => localStorage.getItem(KEYS[part]));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
