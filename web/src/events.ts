// The events of a session's log, and the types of their fields.

import {
  EVENT_TYPES,
  type ActionRecord,
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
export type Confirmation = SessionStarted["confirmation"];
export type CostSource = CompletionEvent["cost_source"];
export type CmdStatus = CmdOutputObservation["status"];
export type EventType = EventRecord["type"];

/** The event of one type: `Of<"CmdRunAction">`. */
export type Of<T extends EventType> = Extract<EventRecord, { type: T }>;

const KNOWN = new Set(EVENT_TYPES);

/**
 * Return the event of a JSON object; an event of a type that this version does not know becomes an UnknownEvent.
 *
 * Actions and observations defined by a user's own agent are shown by the fields that all of them have.
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

/** The own fields of an action defined by a user's agent; null for Handiwork's actions. */
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
