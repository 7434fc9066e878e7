/** The visible rows of a file tree. */

import type { FileEntry } from "../../../generated/types";
import { joined } from "./kind";

export interface Row {
  path: string;
  entry: FileEntry;
  /** 1 is directly in the workspace. */
  level: number;
  open: boolean;
}

/** Return the rows from top to bottom; `directories` are the loaded ones, `open` the unfolded ones. */
export function rows(
  directories: ReadonlyMap<string, readonly FileEntry[]>,
  open: ReadonlySet<string>,
  directory = "",
  level = 1,
): Row[] {
  return (directories.get(directory) ?? []).flatMap((entry) => {
    const path = joined(directory, entry.name);
    const unfolded = entry.kind === "dir" && open.has(path);
    const row = { path, entry, level, open: unfolded };
    return unfolded ? [row, ...rows(directories, open, path, level + 1)] : [row];
  });
}

/** The effect of a key: focus another row, or unfold or fold a directory. */
type Move = { to: number } | { unfold: string } | { fold: string } | null;

/** Return the effect of a key, as in the ARIA tree pattern. */
export function move(shown: readonly Row[], at: number, key: string): Move {
  const row = shown[at];
  if (!row) return shown.length > 0 ? { to: 0 } : null;
  switch (key) {
    case "ArrowDown":
      return { to: Math.min(at + 1, shown.length - 1) };
    case "ArrowUp":
      return { to: Math.max(at - 1, 0) };
    case "Home":
      return { to: 0 };
    case "End":
      return { to: shown.length - 1 };
    case "ArrowRight":
      if (row.entry.kind !== "dir") return null;
      return row.open ? { to: Math.min(at + 1, shown.length - 1) } : { unfold: row.path };
    case "ArrowLeft": {
      if (row.open) return { fold: row.path };
      const parent = shown.findLastIndex((other, index) => index < at && other.level < row.level);
      return parent < 0 ? null : { to: parent };
    }
    default:
      return null;
  }
}
