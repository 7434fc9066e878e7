/** What the shells of a session printed, as text for a terminal. */

import { type EventRecord, isObservation, type Of } from "../../events";
import type { Card } from "../../fold";
import type { Chunk } from "./writing";

type Shell = Of<"CmdRunAction"> | Of<"JobAction">;

const DIM = "\x1b[90m";
const GREEN = "\x1b[1;32m";
const RED = "\x1b[31m";
const OFF = "\x1b[0m";

/** Characters of all output that are kept in the terminal; the oldest of more go. */
const ROOM = 400_000;

/** The commands among the cards with what they printed; `live` is what those that run printed so far. */
export function transcript(cards: readonly Card[], live: ReadonlyMap<number, string>): Chunk[] {
  const cwd = new Map<number, string>();
  const chunks: Chunk[] = [];
  let shell = 0;
  for (const card of cards) {
    if (!isShell(card.action)) continue;
    const other = card.subtask !== shell ? `${DIM}── ${who(card.subtask)} ──${OFF}\n` : "";
    shell = card.subtask;
    const text = other + asked(card.action, cwd.get(card.subtask) ?? "") + answered(card, live.get(card.id) ?? "");
    chunks.push({ id: card.id, text });
    if (card.observation?.type === "CmdOutputObservation") cwd.set(card.subtask, card.observation.cwd);
  }
  return lastOf(chunks);
}

function isShell(action: EventRecord): action is Shell {
  return action.type === "CmdRunAction" || action.type === "JobAction";
}

function who(subtask: number): string {
  return subtask === 0 ? "the session's own shell" : `the delegate's shell, since event ${subtask}`;
}

function asked(action: Shell, cwd: string): string {
  if (action.type === "JobAction") {
    return `${DIM}jobs: ${[action.operation, action.job].filter(Boolean).join(" ")}${OFF}\n`;
  }
  if (action.is_input) return `${DIM}⌨ ${OFF}${action.command}\n`;
  if (!action.command) return `${DIM}(reads more)${OFF}\n`;
  const lines = action.command.replace(/\n+$/, "").split("\n");
  return `${DIM}${cwd}${cwd && " "}${OFF}${GREEN}$${OFF} ${lines.join(`\n${DIM}>${OFF} `)}${action.background ? " &" : ""}\n`;
}

function answered(card: Card, live: string): string {
  const found = card.observation;
  if (!found || !isObservation(found)) return live;
  let text = found.content;
  if (found.blob) {
    text = `${line(text)}${DIM}[… ${found.size.toLocaleString()} bytes in all; the card in the chat has them …]${OFF}\n${found.tail}`;
  }
  text = line(text);
  if (found.type === "ErrorObservation" || found.type === "UserRejectObservation") return `${RED}${text}${OFF}`;
  if (found.type !== "CmdOutputObservation") return text;
  return text + ended(found);
}

function ended(found: Of<"CmdOutputObservation">): string {
  const said: string[] = [];
  if (found.status === "running") said.push("still running");
  else if (found.status === "input") said.push("waits for input");
  else if (found.status === "background") said.push(`in the background as ${found.job}`);
  else if (found.status !== "done") said.push(found.status);
  if (found.limit) said.push(`reached the limit: ${found.limit}`);
  if (found.exit_code) said.push(`exit code ${found.exit_code}`);
  if (said.length === 0) return "";
  return `${found.exit_code ? RED : DIM}[${said.join(", ")}]${OFF}\n`;
}

/** The text, ended by a line break if there is any. */
function line(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

function lastOf(chunks: Chunk[]): Chunk[] {
  let room = ROOM;
  let first = chunks.length;
  while (first > 0 && room > 0) {
    first -= 1;
    room -= chunks[first]?.text.length ?? 0;
  }
  return chunks.slice(first);
}
