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

/** Return the event of a JSON object of the server; one of a type this version does not know is an UnknownEvent. */
export function asEvent(data: JsonObject): EventRecord {
  if (KNOWN.has(String(data["type"]))) return data as unknown as EventRecord;
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

export function isAction(event: EventRecord): event is ActionRecord {
  return event.type.endsWith("Action");
}

export function isObservation(event: EventRecord): event is ObservationRecord {
  return event.type.endsWith("Observation");
}
