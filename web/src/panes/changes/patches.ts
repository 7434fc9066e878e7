/** The patch of each file, out of one patch for all of them. */

import type { FileChange } from "../../../generated/types";

/** Patches in the order of the files. A file whose type changed is first deleted and then added. */
export function patches(files: readonly FileChange[], patch: string): string[] {
  // Lines of a hunk begin with a sign, so these beginnings are the headers of files.
  const parts = patch.split(/^(?=diff --git |Binary file )/m).filter(Boolean);
  let at = 0;
  return files.map((file) => {
    const from = at;
    at += file.kind === "type" && !file.binary ? 2 : 1;
    return parts.slice(from, at).join("");
  });
}
