/** What the conversation shows of a session's events: messages, cards of an action with its result, and notices. */

import {
  type ActionRecord,
  type EventRecord,
  isAction,
  isObservation,
  type ObservationRecord,
  type Of,
} from "../events";
import { type Notice, noticeOf } from "./notices";
import { shortName } from "./text";

interface Place {
  key: string;
  /** The id of the event it begins with. */
  id: number;
  subtask: number;
  /** How many subtasks it is inside of. */
  depth: number;
}
export interface MessageEntry extends Place {
  kind: "message";
  event: Of<"MessageAction">;
}
export interface CardEntry extends Place {
  kind: "card";
  action: ActionRecord;
  observation: ObservationRecord | null;
  /** "" where another action of the same reply has said it. */
  thought: string;
}
export interface NoticeEntry extends Place {
  kind: "notice";
  notice: Notice;
}
/** Another subtask has the word from here on. */
export interface HeadingEntry extends Place {
  kind: "heading";
  name: string;
}
export type Entry = MessageEntry | CardEntry | NoticeEntry | HeadingEntry;

/** An agent's work within the task, as far as the loaded events and the session tell. */
export interface Known {
  parent: number;
  agent: string;
}

/** Return what is shown of ascending events; `known` are subtasks that may have begun before the first of them. */
export function entriesOf(events: readonly EventRecord[], known: ReadonlyMap<number, Known> = new Map()): Entry[] {
  const results = resultsOf(events);
  const subtasks = new Map(known);
  const reached = new Set<string>();
  const found: Entry[] = [];
  let speaker = 0;
  let completion: number | null = null;
  for (const event of events) {
    if (event.type === "AgentDelegateAction") subtasks.set(event.id, { parent: event.subtask, agent: event.agent });
    if (isRepeated(event, reached)) continue;
    const entry = entryOf(event, results, completion);
    if (entry === null) continue;
    if (isAction(event) && event.completion !== null) completion = event.completion;
    entry.depth = lineOf(event.subtask, subtasks).length - 1;
    if (event.subtask !== speaker && !lineOf(speaker, subtasks).includes(event.subtask))
      found.push(heading(entry, subtasks));
    speaker = event.type === "AgentDelegateAction" && event.cause === null ? event.id : event.subtask;
    found.push(entry);
  }
  return found;
}

/** The subtask and those it is part of, up to the task itself (0). */
export function lineOf(subtask: number, subtasks: ReadonlyMap<number, Known>): number[] {
  const found = [subtask];
  for (let at = subtask; at !== 0 && found.length < 20;) {
    at = subtasks.get(at)?.parent ?? 0;
    found.push(at);
  }
  return found;
}

function entryOf(
  event: EventRecord,
  results: ReadonlyMap<number, ObservationRecord>,
  completion: number | null,
): Entry | null {
  const place = { key: String(event.id), id: event.id, subtask: event.subtask, depth: 0 };
  if (event.type === "MessageAction") return { ...place, kind: "message", event };
  const notice = noticeOf(event);
  if (notice !== null) return { ...place, kind: "notice", notice };
  if (!isAction(event) || event.type === "ChangeAgentStateAction") return null;
  const repeats = event.completion !== null && event.completion === completion;
  const thought = repeats ? "" : event.thought.trim();
  const observation = results.get(event.id) ?? null;
  if (event.type === "AgentThinkAction" && !thought && observation === null) return null;
  return { ...place, kind: "card", action: event, observation, thought };
}

function resultsOf(events: readonly EventRecord[]): Map<number, ObservationRecord> {
  const found = new Map<number, ObservationRecord>();
  for (const event of events)
    if (isObservation(event) && event.cause !== null && event.type !== "AgentStateChangedObservation")
      found.set(event.cause, event);
  return found;
}

/** A program makes many connections, or tries again: the same answer is shown once. */
function isRepeated(event: EventRecord, reached: Set<string>): boolean {
  if (event.type !== "EgressEvent") return false;
  const what = `${event.host}:${event.port} ${event.allowed}`;
  if (reached.has(what)) return true;
  reached.add(what);
  return false;
}

function heading(entry: Entry, subtasks: ReadonlyMap<number, Known>): HeadingEntry {
  const { id, subtask, depth } = entry;
  const agent = subtasks.get(subtask)?.agent;
  const name = subtask === 0 ? "The task itself" : agent ? shortName(agent) : `Subtask ${subtask}`;
  return { kind: "heading", key: `heading-${id}`, id, subtask, depth, name };
}
