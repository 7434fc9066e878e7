/** The timeline's entries: actions with their results, and the other events. */

import type { Outline as Page } from "../../../generated/types";

export interface Entry {
  /** The id of the action, or of the other event. */
  id: number;
  /** The id of the action's result; of anything else its own. */
  end: number;
  type: string;
  failed: boolean;
}

export const FILTERS = { all: "All", conversation: "Conversation", actions: "Actions", failures: "Failures" };
export type Filter = keyof typeof FILTERS;

const CONVERSATION = new Set(["MessageAction", "AgentFinishAction", "AgentRejectAction", "ApprovalEvent"]);

export class Outline {
  /** Ascending by `id`. */
  entries: readonly Entry[] = [];
  /** The id of the last event. */
  last = 0;
  private readonly actions = new Map<number, Entry>();

  /** Add the events after the last one. */
  add(page: Page): void {
    if (page.first !== this.last + 1) return;
    const failed = new Set(page.failed);
    const entries = [...this.entries];
    page.types.forEach((name, index) => {
      const id = page.first + index;
      const type = page.names[name] ?? "";
      const action = this.actions.get(page.causes[index] ?? 0);
      if (action !== undefined && type.endsWith("Observation") && type !== "AgentStateChangedObservation") {
        action.end = id;
        action.failed ||= failed.has(id);
        return;
      }
      const entry = { id, end: id, type, failed: failed.has(id) };
      entries.push(entry);
      if (type.endsWith("Action")) this.actions.set(id, entry);
    });
    this.entries = entries;
    this.last += page.types.length;
  }
}

export function filtered(entries: readonly Entry[], filter: Filter): readonly Entry[] {
  switch (filter) {
    case "all":
      return entries;
    case "conversation":
      return entries.filter(({ type }) => CONVERSATION.has(type));
    case "actions":
      return entries.filter(({ type }) => type.endsWith("Action") && type !== "MessageAction");
    case "failures":
      return entries.filter(({ failed }) => failed);
  }
}

/** Return the position of the entry that has the event, else of the last entry before it; -1 if there is none. */
export function positionOf(entries: readonly Entry[], event: number): number {
  const before = entries.findLastIndex(({ id }) => id <= event);
  if (entries[before]?.id === event) return before;
  const ended = entries.findLastIndex(({ end }, index) => index <= before && end === event);
  return ended < 0 ? before : ended;
}

/** Return the event to go to when `event` is asked for: the end of an entry, on the side of `from` that was meant. */
export function snapped(entries: readonly Entry[], event: number, from: number): number | null {
  const at = Math.max(0, positionOf(entries, event));
  const entry = entries[at];
  if (entry === undefined) return null;
  // An action's id is before its result's: from the result backwards, it is the entry before that is meant.
  return event < from && entry.end >= from ? (entries[at - 1] ?? entry).end : entry.end;
}
