// Pairs actions with their results, and adds ended delegates to the working ones that the server sends.

import { type ActionRecord, type EventRecord, isAction, isObservation, type ObservationRecord } from "./events";
import type { Subtask as WorkingSubtask } from "../generated/types";

/** An action with its result; null while it runs. */
export interface Card {
  id: number;
  subtask: number;
  action: ActionRecord;
  observation: ObservationRecord | null;
}

/** A delegate. Cost (USD) and steps exclude its own delegates; of an ended delegate they cover the loaded events. */
export interface Subtask extends Omit<WorkingSubtask, "usage"> {
  task: string;
  /** The fork action that started it, if any. */
  fork: number | null;
  ended: boolean;
}

/** Return the results by the ids of their actions. */
export function resultsOf(events: readonly EventRecord[]): Map<number, ObservationRecord> {
  const results = new Map<number, ObservationRecord>();
  for (const event of events)
    if (isObservation(event) && event.cause !== null && event.type !== "AgentStateChangedObservation")
      results.set(event.cause, event);
  return results;
}

/** Return the cards of ascending events; unchanged cards of `before` stay the same objects. */
export function cardsOf(events: readonly EventRecord[], before: readonly Card[] = []): Card[] {
  const known = new Map(before.map((card) => [card.id, card]));
  const results = resultsOf(events);
  return events.filter(isAction).map((action) => {
    const observation = results.get(action.id) ?? null;
    const card = known.get(action.id);
    return card?.observation === observation ? card : { id: action.id, subtask: action.subtask, action, observation };
  });
}

/** Return the delegates of the loaded events and the `working` ones of the server, by id. */
export function subtasksOf(
  events: readonly EventRecord[],
  working: readonly WorkingSubtask[] = [],
): Map<number, Subtask> {
  const subtasks = new Map<number, Subtask>();
  const end = (subtask: Subtask | undefined, state: Subtask["state"] = "error") => {
    if (subtask) Object.assign(subtask, { state, ended: true });
  };
  for (const event of events) {
    const own = subtasks.get(event.subtask);
    const children = () => [...subtasks.values()].filter((subtask) => subtask.fork === event.cause);
    if (event.type === "AgentDelegateAction") {
      const { id, subtask: parent, agent, cause: fork } = event;
      const task = String(event.inputs["task"] ?? "");
      const start = { state: "running", iterations: 0, cost: 0, ended: false } as const;
      subtasks.set(id, { ...start, id, parent, agent, task, fork, plan: [] });
    } else if (event.type === "CompletionEvent" && own) {
      own.cost += event.cost ?? 0;
    } else if (event.type === "StepStarted" && own) {
      own.iterations += 1;
    } else if (event.type === "AgentStateChangedObservation" && own) {
      own.state = event.agent_state;
    } else if (event.type === "AgentDelegateObservation" && event.cause !== null) {
      end(subtasks.get(event.cause), event.outcome);
    } else if (event.type === "ForkObservation" && event.cause !== null) {
      children().forEach((child, index) => end(child, event.outcomes[index]?.outcome));
    } else if (event.type === "ErrorObservation" && event.cause !== null) {
      for (const subtask of [subtasks.get(event.cause), ...children()]) end(subtask);
    }
  }
  for (const { id, usage: _, ...current } of working) {
    const known = subtasks.get(id);
    // A delegate may have ended since the server computed its state.
    if (!known?.ended) subtasks.set(id, { task: "", fork: null, ended: false, ...known, id, ...current });
  }
  return subtasks;
}
