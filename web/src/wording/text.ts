/** Text of agents and programs, safe to display: nothing in it can hide or reorder other text. */

// The `u` flag makes the range of surrogates match lone ones only, not the halves of pairs. The joiners and the emoji
// style are left, which emoji and scripts need.
const UNSEEN =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff\u{e0000}-\u{e01ef}]/gu;
// CSI (colours, cursor), OSC and similar (titles), two-character escapes.
export const ESCAPE =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]/g;
export const COLOUR = /\x1b\[[\d;:]*m/g;
// From the beginning of a line, or it takes time that is quadratic in the length of a line.
const OVERWRITTEN = /(?<![^\n])[^\n]*\r(?=[^\n\r])/g;

/** The whole text with control and invisible characters spelled out, for text that the user judges. */
export function exact(text: string): string {
  return text.replace(UNSEEN, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16);
    if (code.length > 4) return `\\u{${code}}`;
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

/** The text a terminal would display, with its colour sequences and no others; an overwritten line is left out. */
export function coloured(text: string): string {
  return text
    .replace(ESCAPE, (sequence) => sequence.match(COLOUR)?.[0].replaceAll(":", ";") ?? "")
    .replaceAll("\r\n", "\n")
    .replace(OVERWRITTEN, (line) => (line.match(COLOUR) ?? []).join(""))
    .replaceAll("\r", "");
}

/** The text a terminal would display, without colours. */
export function plain(text: string): string {
  return exact(coloured(text).replace(COLOUR, ""));
}

/** The first line of a text, without colours, cut to `limit` characters. */
export function firstLine(text: string, limit = 160): string {
  const line = plain(text.trim().split("\n", 1)[0] ?? "");
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

/** Quotes and lists in one another: thousands overflow the stack of Markdown's parser, hundreds slow it down. */
const DEEPEST = 100;
const TOO_DEEP = new RegExp(`^(?:[ \\t]*(?:>|(?:[-+*]|\\d{1,9}[.)])[ \\t])){${DEEPEST}}`, "m");

/** Whether a text in Markdown nests too deep to be laid out, as one of a model that writes "> > >" without end. */
export function nestsTooDeep(markdown: string): boolean {
  return TOO_DEEP.test(markdown);
}

/** The first and last lines of a text longer than `limit` lines, and the number of lines between them. */
export function bounded(text: string, limit: number): { head: string; omitted: number; tail: string } {
  const lines = text.split("\n");
  if (lines.length <= limit + 3) return { head: text, omitted: 0, tail: "" };
  const half = Math.ceil(limit / 2);
  return {
    head: lines.slice(0, half).join("\n"),
    omitted: lines.length - 2 * half,
    tail: lines.slice(-half).join("\n"),
  };
}

export function words(name: string): string {
  return name.replaceAll("_", " ");
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** An agent's name without its file or module. */
export function shortName(agent: string): string {
  return agent.slice(agent.lastIndexOf(":") + 1);
}

/** A model's name without its provider's path, or the folders of a local file. */
export function modelName(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1);
}

/** The texts as sentences. */
export function sentences(...texts: string[]): string {
  return texts
    .map((text) => capital(text.trim()))
    .filter(Boolean)
    .map((text) => (/[.!?:]$/.test(text) ? text : `${text}.`))
    .join(" ");
}

/** The text of a delegate's task: its "task" input, then its other inputs. */
export function taskText(inputs: Record<string, unknown>): string {
  const { task = "", ...rest } = inputs;
  return [jsonText(task), ...fieldTexts(rest)].join("\n").trim();
}

/** The text of an agent's outputs: its message or reason, then its other outputs. */
export function outputsText(outputs: Record<string, unknown>): string {
  const { message, reason, ...rest } = outputs;
  const texts = [message, reason].filter((text) => text !== undefined).map(jsonText);
  return [...texts, ...fieldTexts(rest)].join("\n\n").trim();
}

/** A JSON value as text; a string as it is. */
export function jsonText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function fieldTexts(fields: Record<string, unknown>): string[] {
  return Object.entries(fields).map(([key, value]) => `${key}: ${jsonText(value)}`);
}
