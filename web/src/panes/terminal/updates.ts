/** The update that brings a terminal from the written chunks to the current ones. */

/** A command with its output so far; chunks are in order and keep their ids. */
export interface Chunk {
  id: number;
  text: string;
}

interface Update {
  /** Clear the terminal first. */
  reset: boolean;
  text: string;
}

/** Return the update; old chunks removed from the front may stay. */
export function updateOf(written: readonly Chunk[], current: readonly Chunk[]): Update {
  const rewrite = () => ({ reset: written.length > 0, text: current.map((chunk) => chunk.text).join("") });
  const first = current[0];
  if (!first) return rewrite();
  const from = written.findIndex((chunk) => chunk.id === first.id);
  if (from < 0) return rewrite();
  let text = "";
  for (const [index, chunk] of current.entries()) {
    const before = written[from + index];
    if (!before) text += chunk.text;
    else if (before.id !== chunk.id || !chunk.text.startsWith(before.text)) return rewrite();
    else if (before.text.length < chunk.text.length) {
      if (written.length > from + index + 1) return rewrite();
      text += chunk.text.slice(before.text.length);
    }
  }
  return written.length > from + current.length ? rewrite() : { reset: false, text };
}
