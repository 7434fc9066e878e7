// What is shown of a session, computed from its events and from nothing else.

import type { ActionRecord, AgentState, EventRecord, JsonObject, Usage } from "./events";
import { isAction, isObservation } from "./events";
import type { PlanTask, Subtask as WorkingSubtask } from "../generated/types";

/** An action with what came of it; or, `observation` then being null, something else worth telling. */
export interface Card {
  id: number;
  subtask: number;
  action: EventRecord;
  observation: EventRecord | null;
}

/** A delegate; cost (USD), tokens and steps are of itself, without those below it, and of the loaded events. */
export interface Subtask {
  id: number;
  parent: number;
  agent: string;
  task: string;
  state: AgentState;
  cost: number;
  usage: Usage;
  iterations: number;
  plan: PlanTask[];
  outputs: JsonObject | null;
}

/** Return the cards of events that ascend; those of `before` that did not change are the same objects. */
export function cardsOf(events: readonly EventRecord[], before: readonly Card[] = []): Card[] {
  const old = new Map(before.map((card) => [card.id, card]));
  const results = new Map<number, EventRecord>();
  const known = new Set<number>();
  for (const event of events) {
    if (isAction(event)) known.add(event.id);
    else if (isResult(event) && known.has(event.cause) && !results.has(event.cause)) results.set(event.cause, event);
  }
  const cards: Card[] = [];
  for (const action of events) {
    if (!isAction(action) && !isTold(action, known)) continue;
    const observation = results.get(action.id) ?? null;
    const same = old.get(action.id);
    if (same !== undefined && same.observation === observation) cards.push(same);
    else cards.push({ id: action.id, subtask: action.subtask, action, observation });
  }
  return cards;
}

function isResult(event: EventRecord): event is EventRecord & { cause: number } {
  return isObservation(event) && event.type !== "AgentStateChangedObservation" && event.cause !== null;
}

/** Whether an event that is no action, nor the result of one, is told by itself. */
function isTold(event: EventRecord, actions: ReadonlySet<number>): boolean {
  switch (event.type) {
    case "AgentStateChangedObservation":
    case "LoopEvent":
    case "CondensationEvent":
    case "ApprovalEvent":
    case "SettingsChanged":
    case "NetworkAllowed":
    case "UnknownEvent":
      return true;
    case "ErrorObservation": // one without an action is about a reply that made no sense
      return event.cause === null || !actions.has(event.cause);
    case "SessionStarted":
      return event.resumed;
    case "SnapshotEvent":
      return event.problem !== "";
    case "EgressEvent":
      return !event.allowed;
    default:
      return false;
  }
}

/** Return the delegates of the loaded events and those `working` that the server knows of, by their ids. */
export function subtasksOf(
  events: readonly EventRecord[],
  working: readonly WorkingSubtask[] = [],
): Map<number, Subtask> {
  const found = new Map<number, Subtask>();
  const forked = new Map<number, Subtask[]>();
  for (const event of events) {
    const own = event.subtask === 0 ? undefined : found.get(event.subtask);
    if (event.type === "AgentDelegateAction") {
      const made = opened(event);
      found.set(event.id, made);
      if (event.cause !== null) forked.set(event.cause, [...(forked.get(event.cause) ?? []), made]);
    } else if (event.type === "CompletionEvent" && own) {
      own.cost += event.cost ?? 0;
      own.usage = added(own.usage, event.usage);
    } else if (event.type === "StepStarted" && own) {
      own.iterations += 1;
    } else if (event.type === "AgentStateChangedObservation" && own) {
      own.state = event.agent_state;
    } else {
      close(event, found, forked);
    }
  }
  for (const { id, parent, agent, state, iterations, cost, usage, plan } of working) {
    const known = found.get(id);
    if (known !== undefined && known.outputs !== null) continue; // it ended since the server was asked
    const task = known?.task ?? "";
    found.set(id, { id, parent, agent, task, state, iterations, cost, usage, plan, outputs: null });
  }
  return found;
}

function opened(action: Extract<ActionRecord, { type: "AgentDelegateAction" }>): Subtask {
  return {
    id: action.id,
    parent: action.subtask,
    agent: action.agent,
    task: String(action.inputs["task"] ?? ""),
    state: "running",
    cost: 0,
    usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
    iterations: 0,
    plan: [],
    outputs: null,
  };
}

function close(event: EventRecord, found: Map<number, Subtask>, forked: Map<number, Subtask[]>): void {
  if (!isObservation(event) || event.cause === null) return;
  const one = found.get(event.cause);
  const children = forked.get(event.cause) ?? [];
  if (event.type === "AgentDelegateObservation" && one) {
    one.state = event.outcome;
    one.outputs = event.outputs;
  } else if (event.type === "ForkObservation") {
    children.forEach((child, place) => {
      child.state = event.outcomes[place]?.outcome ?? "error";
      child.outputs = event.outcomes[place]?.outputs ?? {};
    });
  } else if (event.type === "ErrorObservation") {
    for (const ended of one ? [one, ...children] : children) {
      ended.state = "error";
      ended.outputs = {};
    }
  }
}

export function added(one: Usage, other: Usage): Usage {
  return {
    input: one.input + other.input,
    output: one.output + other.output,
    cache_read: one.cache_read + other.cache_read,
    cache_write: one.cache_write + other.cache_write,
  };
}
