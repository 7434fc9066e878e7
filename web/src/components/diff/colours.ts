// Syntax colours of the lines of a hunk, found when the lines come into view.

import { type RefObject, useEffect, useState } from "react";
import { highlighted } from "../code/highlighter";
import { type DiffLine, shownText } from "./patch";
import { type Piece, piecesOf } from "./pieces";

export type Colours = ReadonlyMap<DiffLine, readonly Piece[]>;

/** The most characters of a hunk's side that are coloured; the lines after them stay plain. */
const MOST = 20_000;

const known = new WeakMap<readonly DiffLine[], Promise<Colours>>();

/** Return the colours of the hunk's lines once the box has been in view. */
export function useColours(
  box: RefObject<HTMLElement | null>,
  hunk: readonly DiffLine[],
  path: string,
): Colours | null {
  const [colours, setColours] = useState<Colours | null>(null);
  useEffect(() => {
    if (box.current === null || path === "") return;
    let stale = false;
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      const found = known.get(hunk) ?? find(hunk, path);
      known.set(hunk, found);
      void found.then((value) => !stale && setColours(value));
    });
    observer.observe(box.current);
    return () => {
      stale = true;
      observer.disconnect();
    };
  }, [box, hunk, path]);
  return colours;
}

async function find(hunk: readonly DiffLine[], path: string): Promise<Colours> {
  const colours = new Map<DiffLine, readonly Piece[]>();
  // Each side is a text of its own: a deleted quote does not end a new string. What both have is coloured as the new one.
  for (const gone of ["added", "deleted"]) {
    const lines = upTo(
      MOST,
      hunk.filter(({ kind }) => kind === "same" || (kind !== gone && (kind === "added" || kind === "deleted"))),
    );
    const html = await highlighted({ text: lines.map(shownText).join("\n"), path });
    if (html === null) break;
    const pieces = piecesOf(html);
    lines.forEach((line, index) => colours.set(line, pieces[index] ?? []));
  }
  return colours;
}

/** Return the first lines that have at most that many characters. */
function upTo(most: number, lines: readonly DiffLine[]): readonly DiffLine[] {
  let size = 0;
  const end = lines.findIndex(({ text }) => (size += text.length + 1) > most);
  return end < 0 ? lines : lines.slice(0, end);
}
