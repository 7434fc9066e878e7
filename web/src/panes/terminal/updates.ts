/** The update that brings a terminal from the written chunks to the current ones. */

/** A command with its output so far; chunks are in order and keep their ids. */
export interface Chunk {
  id: number;
  text: string;
  /** Set while the command runs: of long output only the end is kept then. */
  live?: boolean;
}

/** Characters by which the end of the written text is found again. */
const ENDING = 2000;

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
    else if (before.id !== chunk.id) return rewrite();
    else if (before.text !== chunk.text) {
      const more = added(before.text, chunk);
      if (more === null || written.length > from + index + 1) return rewrite();
      text += more;
    }
  }
  return written.length > from + current.length ? rewrite() : { reset: false, text };
}

/** Return the text of the chunk after what is written; null if the chunk does not have that any more. */
function added(before: string, { text, live }: Chunk): string | null {
  if (text.startsWith(before)) return text.slice(before.length);
  const ending = before.slice(-ENDING);
  const at = live ? text.lastIndexOf(ending) : -1;
  return at < 0 ? null : text.slice(at + ending.length);
}
