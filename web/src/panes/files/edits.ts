/** Texts of files as the user edits them, before they are saved. */

export interface Edit {
  /** The text of the file when the user began to edit it. */
  before: string;
  text: string;
}

const edits = new Map<string, Edit>();

// A reload would lose them, so the browser asks first.
globalThis.addEventListener?.("beforeunload", (event) => {
  if ([...edits.values()].some(({ before, text }) => text !== before)) event.preventDefault();
});

/** The unsaved edit of a file, kept while other files, panes or sessions are shown. */
export function editOf(session: string, path: string): Edit | null {
  return edits.get(`${session} ${path}`) ?? null;
}

export function saveEdit(session: string, path: string, edit: Edit | null): void {
  if (edit === null) edits.delete(`${session} ${path}`);
  else edits.set(`${session} ${path}`, edit);
}

/** Return the line break that every line of the text ends with, or "\n": other breaks are then part of the lines. */
export function lineBreak(text: string): "\r\n" | "\n" {
  const all = text.split("\n").length - 1;
  return all > 0 && text.split("\r\n").length - 1 === all ? "\r\n" : "\n";
}

/** Return the indentation of the first indented line, or four spaces. */
export function indentation(text: string): string {
  return /^(\t| {2,8})\S/m.exec(text)?.[1] ?? "    ";
}

/** Return the text of the bytes, which encodes to the same bytes again; null if they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
