/** The commands and output of the shells as text for a terminal. */

import type { ActionRecord, Of } from "../../events";
import type { Card } from "../../fold";
import { endingOf } from "../../wording/actions";
import { bytes } from "../../wording/format";
import { ESCAPE, exact } from "../../wording/text";
import type { Chunk } from "./updates";

type Shell = Of<"CmdRunAction"> | Of<"JobAction">;

const DIM = "\x1b[90m";
const GREEN = "\x1b[1;32m";
const RED = "\x1b[31m";
const OFF = "\x1b[0m";

/** Colours, and erasing within a line: sequences that leave other lines of the terminal as they are. */
const WITHIN_LINE = /^\x1b\[(?:[\d;:]*m|[012]?K)$/;
const CONTROL = /[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[\d;:]*[mK])/g;

/** The most characters kept in the terminal; the oldest chunks are dropped. */
const ROOM = 400_000;

/** Return a chunk for each command; `live` has the output so far of running ones, those in `asked` wait for approval. */
export function transcript(
  cards: readonly Card[],
  live: ReadonlyMap<number, string>,
  asked: ReadonlySet<number> = new Set(),
): Chunk[] {
  const cwd = new Map<number, string>();
  const chunks: Chunk[] = [];
  let shell = 0;
  for (const card of cards) {
    if (!isShell(card.action) || asked.has(card.id)) continue;
    const heading = card.subtask !== shell ? `${DIM}── ${shellName(card.subtask)} ──${OFF}\n` : "";
    shell = card.subtask;
    const text =
      heading + commandText(card.action, cwd.get(card.subtask) ?? "") + resultText(card, live.get(card.id) ?? "");
    chunks.push({ id: card.id, text, ...(card.observation ? {} : { live: true }) });
    if (card.observation?.type === "CmdOutputObservation") cwd.set(card.subtask, card.observation.cwd);
  }
  return newest(chunks);
}

function isShell(action: ActionRecord): action is Shell {
  return action.type === "CmdRunAction" || action.type === "JobAction";
}

function shellName(subtask: number): string {
  return subtask === 0 ? "the session's own shell" : `the delegate's shell, since event ${subtask}`;
}

function commandText(action: Shell, cwd: string): string {
  if (action.type === "JobAction") {
    return `${DIM}jobs: ${exact([action.operation, action.job].filter(Boolean).join(" "))}${OFF}\n`;
  }
  if (action.is_input) return `${DIM}⌨ ${OFF}${exact(action.command)}\n`;
  if (!action.command) return `${DIM}(waiting for more output)${OFF}\n`;
  const lines = exact(action.command).replace(/\n+$/, "").split("\n");
  return `${DIM}${exact(cwd)}${cwd && " "}${OFF}${GREEN}$${OFF} ${lines.join(`\n${DIM}>${OFF} `)}${action.background ? " &" : ""}\n`;
}

function resultText({ observation }: Card, live: string): string {
  if (!observation) return printed(live);
  const { type, content, blob, size, tail } = observation;
  const gap = `${DIM}[… ${bytes(size)} in all; the card in the chat has the rest …]${OFF}\n`;
  const text = blob ? line(printed(content)) + gap + line(printed(tail)) : line(printed(content));
  if (["ErrorObservation", "UserRejectObservation", "HookRejectObservation"].includes(type))
    return `${RED}${text}${OFF}`;
  const ending = type === "CmdOutputObservation" ? endingOf(observation) : null;
  return ending ? `${text}${ending.tone === "bad" ? RED : DIM}[${ending.text}]${OFF}\n` : text;
}

/** The output of a program without what would rewrite other lines of the terminal. */
function printed(text: string): string {
  return text.replace(ESCAPE, (sequence) => (WITHIN_LINE.test(sequence) ? sequence : "")).replace(CONTROL, "");
}

/** The text with a final line break, unless it is empty. */
function line(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

function newest(chunks: Chunk[]): Chunk[] {
  let room = ROOM;
  let first = chunks.length;
  while (first > 0 && room > 0) {
    first -= 1;
    room -= chunks[first]?.text.length ?? 0;
  }
  return chunks.slice(first);
}
