/** Unsent comments on the lines of a session's changes, and the message that takes them to the agent. */

import type { DiffLine } from "../../components/diff/patch";

export interface LineComment {
  path: string;
  /** Null for a comment on the whole file. */
  line: DiffLine | null;
  text: string;
}

const comments = new Map<string, LineComment[]>();

const written = new Map<string, Map<string, string>>();

/** The comments being written, by the keys of their lines; kept while other lines, panes or sessions are shown. */
export function writtenIn(session: string): Map<string, string> {
  const texts = written.get(session) ?? new Map<string, string>();
  written.set(session, texts);
  return texts;
}

// A reload would lose them, so the browser asks first.
globalThis.addEventListener?.("beforeunload", (event) => {
  if (comments.size > 0 || [...written.values()].some((texts) => texts.size > 0)) event.preventDefault();
});

/** The comments that wait to be sent, kept while other panes or sessions are shown. */
export function commentsOf(session: string): LineComment[] {
  return comments.get(session) ?? [];
}

export function saveComments(session: string, list: LineComment[]): void {
  if (list.length > 0) comments.set(session, list);
  else comments.delete(session);
}

/** What tells a line from the others of a patch. */
export function lineKey(path: string, line: DiffLine | null): string {
  return `${path}:${line?.old ?? ""}:${line?.new ?? ""}`;
}

/** Return the comment on a line, "" without one. */
export function textOn(list: readonly LineComment[], path: string, line: DiffLine): string {
  const key = lineKey(path, line);
  return list.find((comment) => lineKey(comment.path, comment.line) === key)?.text ?? "";
}

/** Return the list with the comment on a line or file set to `text`; an empty text removes it. */
export function withComment(list: readonly LineComment[], path: string, line: DiffLine | null, text: string) {
  const key = lineKey(path, line);
  const others = list.filter((comment) => lineKey(comment.path, comment.line) !== key);
  return text.trim() ? [...others, { path, line, text: text.trim() }] : others;
}

/** Return the message that tells the agent the comments, file by file, from the first line to the last. */
export function messageOf(list: readonly LineComment[]): string {
  const ordered = [...list].sort(
    (one, other) => one.path.localeCompare(other.path) || place(one.line) - place(other.line),
  );
  const parts = ordered.map(({ path, line, text }) => {
    if (line === null) return `${path}:\n${text}`;
    const where = line.new === null ? `deleted line ${line.old}` : `line ${line.new}`;
    return `${path}, ${where}:\n> ${line.text}\n${text}`;
  });
  return ["Comments on your changes:", ...parts].join("\n\n");
}

function place(line: DiffLine | null): number {
  return line?.new ?? line?.old ?? 0;
}
