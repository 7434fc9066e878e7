// The events of a session's log, and the names of their parts.

import {
  EVENT_TYPES,
  type ActionRecord,
  type BrowseURLAction,
  type ChangeAgentStateAction,
  type CmdOutputObservation,
  type CompletionEvent,
  type EventRecord,
  type ModifyTaskAction,
  type ObservationRecord,
  type SessionStarted,
} from "../generated/types";
import type { JsonObject } from "./json";

export type { ActionRecord, EventRecord, Limits, ObservationRecord, Part, Usage } from "../generated/types";
export type { Json, JsonObject } from "./json";

export type AgentState = ChangeAgentStateAction["agent_state"];
export type TaskState = ModifyTaskAction["state"];
export type BrowserView = BrowseURLAction["view"];
export type Confirmation = SessionStarted["confirmation"];
export type CostSource = CompletionEvent["cost_source"];
export type CmdStatus = CmdOutputObservation["status"];
export type EventType = EventRecord["type"];

/** The event of one type: `Of<"CmdRunAction">`. */
export type Of<T extends EventType> = Extract<EventRecord, { type: T }>;

const KNOWN = new Set(EVENT_TYPES);

/**
 * Return the event of a JSON object of the server; one of a type this version does not know is an UnknownEvent.
 *
 * Actions and observations that a user's own agent defines are shown by the fields that they share with all others.
 */
export function asEvent(data: JsonObject): EventRecord {
  const type = String(data["type"]);
  const own = (type.endsWith("Action") && "thought" in data) || (type.endsWith("Observation") && "content" in data);
  if (KNOWN.has(type) || own) return data as unknown as EventRecord;
  return {
    type: "UnknownEvent",
    id: Number(data["id"]),
    schema: 1,
    timestamp: String(data["timestamp"] ?? ""),
    source: "environment",
    cause: typeof data["cause"] === "number" ? data["cause"] : null,
    subtask: Number(data["subtask"] ?? 0),
    unknown: data,
  };
}

/** The fields of an action of a user's own agent that not every action has; null for an action of Handiwork's. */
export function ownFields(action: ActionRecord): object | null {
  if (KNOWN.has(action.type)) return null;
  const { type, id, schema, timestamp, source, cause, subtask, thought, completion, tool_call_id, ...own } = action;
  return own;
}

export function isAction(event: EventRecord): event is ActionRecord {
  return event.type.endsWith("Action");
}

export function isObservation(event: EventRecord): event is ObservationRecord {
  return event.type.endsWith("Observation");
}
