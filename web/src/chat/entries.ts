/** The entries of the conversation: messages, prose, steps with their results, outcomes, notices, and headings. */

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
/** The text of an agent's reply before its actions. */
interface ProseEntry extends Position {
  kind: "prose";
  text: string;
}
export interface StepEntry extends Position {
  kind: "step";
  action: ActionRecord;
  observation: ObservationRecord | null;
  question: Of<"AgentStateChangedObservation"> | null;
  approval: Of<"ApprovalEvent"> | null;
}
/** The end of the session's task. */
interface OutcomeEntry extends Position {
  kind: "outcome";
  action: Of<"AgentFinishAction"> | Of<"AgentRejectAction">;
  observation: ObservationRecord | null;
}
interface NoticeEntry extends Position {
  kind: "notice";
  notice: Notice;
  /** Whether the notice belongs to the steps around it, and folds with them. */
  machinery: boolean;
}
/** Another subtask continues from here on. */
interface HeadingEntry extends Position {
  kind: "heading";
  name: string;
}
export type Entry = MessageEntry | ProseEntry | StepEntry | OutcomeEntry | NoticeEntry | HeadingEntry;

interface Parent {
  parent: number;
  agent: string;
}
type Subtasks = ReadonlyMap<number, Parent>;

/** Notices of these events, unless they warn, are about the work of the steps. */
const MACHINERY = new Set(["CondensationEvent", "ContextLoaded", "EgressEvent", "HookEvent", "KnowledgeEvent"]);

/** Return the entries of ascending events; `known` has the subtasks that started before the first event. */
export function entriesOf(events: readonly EventRecord[], known: Subtasks = new Map()): Entry[] {
  const answers = answersOf(events);
  const subtasks = new Map(known);
  const connections = new Set<string>();
  const entries: Entry[] = [];
  let speaker = 0;
  let completion: number | null = null;
  for (const event of events)
    if (event.type === "AgentDelegateAction") subtasks.set(event.id, { parent: event.subtask, agent: event.agent });
  for (const event of events) {
    if (isRepeated(event, connections)) continue;
    const own = ownEntries(event, answers, completion);
    if (isAction(event) && event.completion !== null) completion = event.completion;
    const first = own[0];
    if (first === undefined) continue;
    const depth = lineageOf(event.subtask, subtasks).length - 1;
    for (const entry of own) entry.depth = depth;
    if (event.subtask !== speaker && !lineageOf(speaker, subtasks).includes(event.subtask))
      entries.push(headingOf(first, subtasks));
    speaker = event.type === "AgentDelegateAction" && event.cause === null ? event.id : event.subtask;
    entries.push(...own);
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

/** What the events say about actions, by the actions' ids. */
interface Answers {
  actions: ReadonlySet<number>;
  results: ReadonlyMap<number, ObservationRecord>;
  questions: ReadonlyMap<number, Of<"AgentStateChangedObservation">>;
  approvals: ReadonlyMap<number, Of<"ApprovalEvent">>;
}

function answersOf(events: readonly EventRecord[]): Answers {
  const actions = new Set<number>();
  const questions = new Map<number, Of<"AgentStateChangedObservation">>();
  const approvals = new Map<number, Of<"ApprovalEvent">>();
  for (const event of events) {
    if (isAction(event)) actions.add(event.id);
    else if (event.type === "ApprovalEvent") approvals.set(event.action, event);
    else if (event.type === "AgentStateChangedObservation" && event.cause !== null)
      if (event.agent_state === "awaiting_user_confirmation") questions.set(event.cause, event);
  }
  return { actions, results: withChildren(resultsOf(events), events), questions, approvals };
}

/** The result of a fork is also the result of each of its children: the part that is about the child. */
function withChildren(results: Map<number, ObservationRecord>, events: readonly EventRecord[]) {
  const count = new Map<number, number>();
  for (const event of events) {
    if (event.type !== "AgentDelegateAction" || event.cause === null) continue;
    const index = count.get(event.cause) ?? 0;
    count.set(event.cause, index + 1);
    const result = results.get(event.cause);
    const outcomes = result?.type === "ForkObservation" ? result.outcomes.slice(index, index + 1) : [];
    if (result !== undefined)
      results.set(event.id, result.type === "ForkObservation" ? { ...result, outcomes } : result);
  }
  return results;
}

function ownEntries(event: EventRecord, answers: Answers, completion: number | null): Entry[] {
  const position = { key: String(event.id), id: event.id, subtask: event.subtask, depth: 0 };
  if (event.type === "MessageAction") return [{ ...position, kind: "message", event }];
  const notice = noticeOf(event);
  if (notice !== null) {
    if (isTold(event, answers)) return [];
    const machinery = MACHINERY.has(event.type) && notice.tone === "quiet";
    return [{ ...position, kind: "notice", notice, machinery }];
  }
  if (!isAction(event)) return [];
  const entries: Entry[] = [];
  const text = event.completion !== null && event.completion === completion ? "" : event.thought.trim();
  if (text) entries.push({ ...position, kind: "prose", key: `prose-${event.id}`, text });
  const observation = answers.results.get(event.id) ?? null;
  if (event.type === "AgentThinkAction" && observation === null) return entries;
  if ((event.type === "AgentFinishAction" || event.type === "AgentRejectAction") && event.subtask === 0)
    return [...entries, { ...position, kind: "outcome", action: event, observation }];
  const question = answers.questions.get(event.id) ?? null;
  const approval = answers.approvals.get(event.id) ?? null;
  return [...entries, { ...position, kind: "step", action: event, observation, question, approval }];
}

/** Whether the step of the event's action tells what the event says: that it asks, and that it was allowed. */
function isTold(event: EventRecord, { actions }: Answers): boolean {
  if (event.type === "ApprovalEvent") return event.allowed && actions.has(event.action);
  return (
    event.type === "AgentStateChangedObservation" &&
    event.agent_state === "awaiting_user_confirmation" &&
    event.cause !== null &&
    actions.has(event.cause)
  );
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
  const own = subtasks.get(subtask);
  const agent = own && shortName(own.agent);
  const namesakes = [...subtasks].filter(([, other]) => other.parent === own?.parent && other.agent === own.agent);
  const number = namesakes.length > 1 ? ` ${namesakes.findIndex(([other]) => other === subtask) + 1}` : "";
  const name = subtask === 0 ? "The session's task" : agent ? `${agent}${number}` : `Subtask ${subtask}`;
  return { kind: "heading", key: `heading-${id}`, id, subtask, depth, name };
}
