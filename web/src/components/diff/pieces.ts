// Splits the HTML of highlight.js into lines.

/** A part of a line, with the classes of the spans around it, outermost first. */
export interface Piece {
  text: string;
  classes: readonly string[];
}

const TOKEN = /<span class="([^"]*)">|<\/span>|\n|&(amp|lt|gt|quot|#x27);|[^<&\n]+/g;

const CHARACTERS: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };

/** Return the pieces of each line of HTML that highlight.js made. */
export function piecesOf(html: string): Piece[][] {
  let line: Piece[] = [];
  const lines = [line];
  let classes: readonly string[] = [];
  for (const [token, opened, escaped] of html.matchAll(TOKEN)) {
    if (opened !== undefined) classes = [...classes, opened];
    else if (token === "</span>") classes = classes.slice(0, -1);
    else if (token === "\n") lines.push((line = []));
    else {
      const text = escaped === undefined ? token : (CHARACTERS[escaped] ?? token);
      const last = line.at(-1);
      if (last?.classes === classes) last.text += text;
      else line.push({ text, classes });
    }
  }
  return lines;
}
