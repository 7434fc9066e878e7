/** What must be written to a terminal so that it shows the chunks there are now. */

/** A command with its output, so far; chunks are in order and each keeps its id. */
export interface Chunk {
  id: number;
  text: string;
}

export interface Writing {
  /** What is shown must be wiped first. */
  reset: boolean;
  text: string;
}

/** Compare what was written with what is to be seen. Old chunks that are gone from the front may stay. */
export function writing(written: readonly Chunk[], now: readonly Chunk[]): Writing {
  const whole = () => ({ reset: written.length > 0, text: now.map((chunk) => chunk.text).join("") });
  const first = now[0];
  if (!first) return whole();
  const from = written.findIndex((chunk) => chunk.id === first.id);
  if (from < 0) return whole();
  let text = "";
  for (const [at, chunk] of now.entries()) {
    const before = written[from + at];
    if (!before) text += chunk.text;
    else if (before.id !== chunk.id || !chunk.text.startsWith(before.text)) return whole();
    else if (before.text.length < chunk.text.length) {
      if (written.length > from + at + 1) return whole();
      text += chunk.text.slice(before.text.length);
    }
  }
  return written.length > from + now.length ? whole() : { reset: false, text };
}
