// Parses unified diffs.

import { exact } from "../../wording/text";

export interface DiffLine {
  kind: "same" | "added" | "deleted" | "hunk" | "note";
  text: string;
  old: number | null;
  new: number | null;
}

export interface DiffFile {
  path: string;
  added: number;
  deleted: number;
  lines: DiffLine[];
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Return the files of a patch; a patch without headers, like that of an edit, is a file without a path. */
export function filesOf(patch: string): DiffFile[] {
  const files: DiffFile[] = [];
  let from = { old: 0, new: 0 };
  let left = { old: 0, new: 0 };
  const begin = (path: string): DiffFile => {
    const file: DiffFile = { path, added: 0, deleted: 0, lines: [] };
    files.push(file);
    return file;
  };
  for (const line of patch.replace(/\n$/, "").split("\n")) {
    const current = files.at(-1) ?? null;
    const hunk = HUNK.exec(line);
    if (hunk !== null && left.old <= 0 && left.new <= 0) {
      from = { old: Number(hunk[1]), new: Number(hunk[3]) };
      left = { old: Number(hunk[2] ?? 1), new: Number(hunk[4] ?? 1) };
      (current ?? begin("")).lines.push({ kind: "hunk", text: line, old: null, new: null });
    } else if (current !== null && (left.old > 0 || left.new > 0)) {
      addLine(current, line, from, left);
    } else if (line.startsWith("diff --git ")) {
      begin(commonName(line.slice(11)));
    } else if (line.startsWith("--- ") && (current === null || current.lines.some(({ kind }) => kind === "hunk"))) {
      begin(bare(line.slice(4)));
    } else if (line.startsWith("+++ ") && current !== null) {
      if (!line.startsWith("+++ /dev/null")) current.path = bare(line.slice(4));
    } else if (current !== null && line !== "" && !line.startsWith("--- ") && !line.startsWith("index ")) {
      current.lines.push({ kind: "note", text: line, old: null, new: null });
    }
  }
  return files;
}

/** What stands before a line of that kind. */
export const SIGN = { same: " ", added: "+", deleted: "-", hunk: "", note: "" };

/** What is drawn of a line: hidden characters and those that reorder text spelled out, without the CR of a CR LF. */
export function shownText({ text }: DiffLine): string {
  return exact(text.replace(/\r$/, ""));
}

/** Return the text of the hunk whose header is the line `at`. */
export function hunkAt({ lines }: DiffFile, at: number): string {
  const end = lines.findIndex(({ kind }, index) => index > at && kind === "hunk");
  const part = lines.slice(at, end < 0 ? lines.length : end);
  return part.map(({ kind, text }) => `${SIGN[kind]}${text}\n`).join("");
}

function addLine(
  file: DiffFile,
  line: string,
  from: { old: number; new: number },
  left: { old: number; new: number },
): void {
  const text = line.slice(1);
  if (line.startsWith("+")) {
    file.lines.push({ kind: "added", text, old: null, new: from.new++ });
    file.added += 1;
    left.new -= 1;
  } else if (line.startsWith("-")) {
    file.lines.push({ kind: "deleted", text, old: from.old++, new: null });
    file.deleted += 1;
    left.old -= 1;
  } else if (line.startsWith("\\")) {
    file.lines.push({ kind: "note", text: line, old: null, new: null });
  } else {
    file.lines.push({ kind: "same", text, old: from.old++, new: from.new++ });
    left.old -= 1;
    left.new -= 1;
  }
}

/** Return the path in "a/PATH b/PATH", whose blanks need no quotes; of two different paths, the second. */
function commonName(names: string): string {
  const same = /^("?)a(\/.*) \1b\2$/.exec(names);
  return same ? bare(`${same[1]}b${same[2]}`) : (/ b\/(.*)$/.exec(names)?.[1] ?? names);
}

function bare(name: string): string {
  return unquoted(name.split("\t")[0] ?? name).replace(/^[ab]\//, "");
}

const ESCAPES: Record<string, string> = { a: "\x07", b: "\b", t: "\t", n: "\n", v: "\v", f: "\f", r: "\r" };

/** Return a file's name without the quotes and escapes that git writes around special characters. */
function unquoted(name: string): string {
  if (!/^".*"$/.test(name)) return name;
  return name.slice(1, -1).replace(/(?:\\[0-7]{3})+|\\(.)/g, (escapes: string, letter?: string) => {
    if (letter !== undefined) return ESCAPES[letter] ?? letter;
    const bytes = escapes
      .slice(1)
      .split("\\")
      .map((octal) => parseInt(octal, 8));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  });
}
