/** Splits a patch by file. */

import type { FileChange } from "../../../generated/types";

/** Return the patches in the order of the files. A type change is a deletion and an addition. */
export function patches(files: readonly FileChange[], patch: string): string[] {
  // Lines of a hunk start with a sign, so only headers of files start like this. ^ also stands after a carriage return.
  const parts = patch.split(/(?<=\n)(?=diff --git |Binary file )/).filter(Boolean);
  let at = 0;
  return files.map((file) => {
    const from = at;
    at += file.kind === "type" && !file.binary ? 2 : 1;
    return parts.slice(from, at).join("");
  });
}
