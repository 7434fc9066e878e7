/** The entries of the conversation: messages, cards of actions with their results, notices, and headings. */

import { type ActionRecord, type EventRecord, isAction, type ObservationRecord, type Of } from "../events";
import { resultsOf } from "../fold";
import { type Notice, noticeOf } from "../wording/notices";
import { shortName } from "../wording/text";

interface Position {
  key: string;
  /** The id of the entry's first event. */
  id: number;
  subtask: number;
  /** The number of subtasks around the entry. */
  depth: number;
}
interface MessageEntry extends Position {
  kind: "message";
  event: Of<"MessageAction">;
}
interface CardEntry extends Position {
  kind: "card";
  action: ActionRecord;
  observation: ObservationRecord | null;
  /** The reply's thought; "" after the reply's first action. */
  thought: string;
}
interface NoticeEntry extends Position {
  kind: "notice";
  notice: Notice;
}
/** Another subtask continues from here on. */
interface HeadingEntry extends Position {
  kind: "heading";
  name: string;
}
export type Entry = MessageEntry | CardEntry | NoticeEntry | HeadingEntry;

interface Parent {
  parent: number;
  agent: string;
}
type Subtasks = ReadonlyMap<number, Parent>;

/** Return the entries of ascending events; `known` has the subtasks that started before the first event. */
export function entriesOf(events: readonly EventRecord[], known: Subtasks = new Map()): Entry[] {
  const results = resultsOf(events);
  const subtasks = new Map(known);
  const connections = new Set<string>();
  const entries: Entry[] = [];
  let speaker = 0;
  let completion: number | null = null;
  for (const event of events) {
    if (event.type === "AgentDelegateAction") subtasks.set(event.id, { parent: event.subtask, agent: event.agent });
    if (isRepeated(event, connections)) continue;
    const entry = entryOf(event, results, completion);
    if (entry === null) continue;
    if (isAction(event) && event.completion !== null) completion = event.completion;
    entry.depth = lineageOf(event.subtask, subtasks).length - 1;
    if (event.subtask !== speaker && !lineageOf(speaker, subtasks).includes(event.subtask))
      entries.push(headingOf(entry, subtasks));
    speaker = event.type === "AgentDelegateAction" && event.cause === null ? event.id : event.subtask;
    entries.push(entry);
  }
  return entries;
}

/** Return the subtask and its ancestors, up to the session's own task (0). */
export function lineageOf(subtask: number, subtasks: Subtasks): number[] {
  const lineage = [subtask];
  for (let ancestor = subtask; ancestor !== 0 && lineage.length < 20;) {
    ancestor = subtasks.get(ancestor)?.parent ?? 0;
    lineage.push(ancestor);
  }
  return lineage;
}

function entryOf(
  event: EventRecord,
  results: ReadonlyMap<number, ObservationRecord>,
  completion: number | null,
): Entry | null {
  const position = { key: String(event.id), id: event.id, subtask: event.subtask, depth: 0 };
  if (event.type === "MessageAction") return { ...position, kind: "message", event };
  const notice = noticeOf(event);
  if (notice !== null) return { ...position, kind: "notice", notice };
  if (!isAction(event)) return null;
  const thought = event.completion !== null && event.completion === completion ? "" : event.thought.trim();
  const observation = results.get(event.id) ?? null;
  if (event.type === "AgentThinkAction" && !thought && observation === null) return null;
  return { ...position, kind: "card", action: event, observation, thought };
}

/** A program opens many connections or retries; each answer of the proxy is shown once. */
function isRepeated(event: EventRecord, connections: Set<string>): boolean {
  if (event.type !== "EgressEvent") return false;
  const connection = `${event.host}:${event.port} ${event.allowed}`;
  if (connections.has(connection)) return true;
  connections.add(connection);
  return false;
}

function headingOf({ id, subtask, depth }: Entry, subtasks: Subtasks): HeadingEntry {
  const agent = subtasks.get(subtask)?.agent;
  const name = subtask === 0 ? "The session's task" : agent ? shortName(agent) : `Subtask ${subtask}`;
  return { kind: "heading", key: `heading-${id}`, id, subtask, depth, name };
}
