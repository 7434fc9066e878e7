/** Text with terminal colours, as programs print it, made into pieces that a page can show. */

export interface Piece {
  text: string;
  /** Names of CSS classes, separated by spaces. */
  style: string;
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

interface Pen {
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underline: boolean;
  colour: string;
}

const PLAIN: Pen = { bold: false, faint: false, italic: false, underline: false, colour: "" };

// Colours, or any other escape sequence: those are left out, a page has no cursor.
const ESCAPE = /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_=>]/g;

/** Split text at its escape sequences. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let pen = PLAIN;
  let done = 0;
  const add = (part: string) => {
    if (part) found.push({ text: part, style: classes(pen) });
  };
  for (const match of text.matchAll(ESCAPE)) {
    add(text.slice(done, match.index));
    done = match.index + match[0].length;
    if (match[1] !== undefined) pen = drawn(pen, match[1]);
  }
  add(text.slice(done));
  return found;
}

/** The text without its escape sequences. */
export function plain(text: string): string {
  return text.replace(ESCAPE, "");
}

function drawn(before: Pen, codes: string): Pen {
  let pen = before;
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0;
    if (code === 0) pen = PLAIN;
    else if (code === 1) pen = { ...pen, bold: true };
    else if (code === 2) pen = { ...pen, faint: true };
    else if (code === 3) pen = { ...pen, italic: true };
    else if (code === 4) pen = { ...pen, underline: true };
    else if (code === 22) pen = { ...pen, bold: false, faint: false };
    else if (code === 23) pen = { ...pen, italic: false };
    else if (code === 24) pen = { ...pen, underline: false };
    else if (code === 39) pen = { ...pen, colour: "" };
    else if (code >= 30 && code <= 37) pen = { ...pen, colour: COLOURS[code - 30] ?? "" };
    else if (code >= 90 && code <= 97) pen = { ...pen, colour: COLOURS[code - 90] ?? "" };
    else if (code === 38 || code === 48) {
      const palette = numbers[at + 1] === 5;
      const index = numbers[at + 2] ?? 0;
      if (code === 38) pen = { ...pen, colour: palette && index < 16 ? (COLOURS[index % 8] ?? "") : "" };
      at += palette ? 2 : 4;
    }
  }
  return pen;
}

function classes(pen: Pen): string {
  const names = [
    pen.bold && "ansi-bold",
    pen.faint && "ansi-faint",
    pen.italic && "ansi-italic",
    pen.underline && "ansi-underline",
    pen.colour && `ansi-${pen.colour}`,
  ];
  return names.filter(Boolean).join(" ");
}
