/** Text of agents and programs as it may be shown, without what would make it read differently from what it is. */

// The `u` flag makes the last range match lone surrogates only, not the halves of whole pairs.
const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu;
const SEQUENCES = [
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]/g,
  /(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)/g,
  /\x1b[ -/]*[0-~]/g,
];
const OVERWRITTEN = /[^\n]*\r(?=[^\n\r])/g;

/** The text with nothing left out and every control character spelled out: what is judged by it is all. */
export function exact(text: string): string {
  return text.replace(UNSEEN, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

/** The text as a terminal would leave it to be read: without colours, and of overwritten lines the last version. */
export function plain(text: string): string {
  let found = text;
  for (const sequence of SEQUENCES) found = found.replace(sequence, "");
  found = found.replaceAll("\r\n", "\n").replace(OVERWRITTEN, "").replaceAll("\r", "");
  return exact(found);
}

export interface Bounded {
  head: string;
  /** How many lines are between head and tail; 0 if the head is all. */
  left: number;
  tail: string;
}

/** The first and last lines of a text that has more than `most`; a text just a little longer stays whole. */
export function bounded(text: string, most: number): Bounded {
  const lines = text.split("\n");
  if (lines.length <= most + 3) return { head: text, left: 0, tail: "" };
  const half = Math.ceil(most / 2);
  return {
    head: lines.slice(0, half).join("\n"),
    left: lines.length - 2 * half,
    tail: lines.slice(-half).join("\n"),
  };
}

export function bytes(size: number): string {
  if (size < 1000) return `${size} bytes`;
  if (size < 1_000_000) return `${(size / 1000).toFixed(1)} kB`;
  return `${(size / 1_000_000).toFixed(1)} MB`;
}

export function words(name: string): string {
  return name.replaceAll("_", " ");
}

/** The name of an agent without the file or module it is in. */
export function shortName(agent: string): string {
  return agent.slice(agent.lastIndexOf(":") + 1);
}

/** What a delegate is told to do: its "task", and whatever else it was given. */
export function taskText(inputs: Record<string, unknown>): string {
  const { task = "", ...rest } = inputs;
  return [said(task), ...Object.entries(rest).map(([key, value]) => `${key}: ${said(value)}`)].join("\n").trim();
}

/** A JSON value for a person to read: text as it is. */
export function said(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** What an agent gave back: its message, or its reason, as it is, and whatever else by its name. */
export function outputsText(outputs: Record<string, unknown>): string {
  const { message, reason, ...rest } = outputs;
  const own = [message, reason].filter((text) => text !== undefined).map(said);
  const others = Object.entries(rest).map(([key, value]) => `${key}: ${said(value)}`);
  return [...own, ...others].join("\n\n").trim();
}
