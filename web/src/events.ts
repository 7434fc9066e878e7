// The events of a session's log, as handiwork/events writes them.

export type AgentState =
  | "loading"
  | "running"
  | "awaiting_user_input"
  | "awaiting_user_confirmation"
  | "paused"
  | "stopped"
  | "finished"
  | "rejected"
  | "error";
export type TaskState = "open" | "in_progress" | "completed" | "abandoned" | "verified";
export type BrowserView = "visible" | "full" | "text";
export type CmdStatus = "done" | "running" | "input" | "exited" | "interrupted" | "timeout" | "background";
export type Confirmation = "never" | "risky" | "always";
export type CostSource = "provider" | "price_list" | "local" | "scripted" | "unknown";
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** A part of a message: text, or a picture kept as a blob. */
export interface Part {
  text: string | null;
  blob: string | null;
  media_type: string | null;
}

/** Tokens in four classes that do not overlap. */
export interface Usage {
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
}

/** What a session may spend; null is no limit, time is seconds, cost USD. */
export interface Limits {
  iterations: number | null;
  cost: number | null;
  tokens: number | null;
  time: number | null;
}

interface Event<T extends string> {
  type: T;
  id: number;
  schema: number;
  timestamp: string;
  source: "agent" | "user" | "environment";
  cause: number | null;
  subtask: number;
}

interface Action<T extends string> extends Event<T> {
  thought: string;
  completion: number | null;
  tool_call_id: string | null;
}

/** `content` is all of the text, or its head, with its end in `tail` and the whole (`size` bytes) in `blob`. */
interface Observation<T extends string> extends Event<T> {
  content: string;
  tail: string;
  size: number;
  blob: string | null;
}

export type ActionRecord =
  | (Action<"MessageAction"> & { content: string; images: Part[]; wait_for_response: boolean })
  | (Action<"CmdRunAction"> & { command: string; is_input: boolean; background: boolean; timeout: number | null })
  | (Action<"JobAction"> & { operation: "list" | "read" | "stop"; job: string })
  | (Action<"OutputReadAction"> & { output: string; start: number; end: number | null; pattern: string })
  | (Action<"IPythonRunCellAction"> & { code: string; timeout: number | null })
  | (Action<"FileReadAction"> & { path: string; start: number; end: number | null })
  | (Action<"FileWriteAction"> & { path: string; content: string })
  | (Action<"FileEditAction"> & { path: string; old: string; new: string })
  | (Action<"BrowseURLAction"> & { url: string; view: BrowserView; marks: boolean })
  | (Action<"BrowseInteractiveAction"> & { browser_actions: string; view: BrowserView; marks: boolean })
  | (Action<"CodeSearchAction"> & { query: string })
  | (Action<"MCPCallAction"> & { server: string; tool: string; arguments: JsonObject })
  | (Action<"AgentDelegateAction"> & { agent: string; inputs: JsonObject })
  | (Action<"ForkAction"> & { children: [string, JsonObject][] })
  | (Action<"AgentFinishAction"> & { outputs: JsonObject })
  | (Action<"AgentRejectAction"> & { outputs: JsonObject })
  | Action<"AgentThinkAction">
  | (Action<"AddTaskAction"> & { parent: string; goal: string; subtasks: string[] })
  | (Action<"ModifyTaskAction"> & { task_id: string; state: TaskState })
  | (Action<"ChangeAgentStateAction"> & { agent_state: AgentState });

export type ObservationRecord =
  | (Observation<"CmdOutputObservation"> & {
      command: string;
      exit_code: number | null;
      status: CmdStatus;
      cwd: string;
      job: string;
      limit: string;
    })
  | (Observation<"JobObservation"> & {
      operation: string;
      job: string;
      status: "running" | "done" | "stopped" | null;
      exit_code: number | null;
    })
  | (Observation<"OutputReadObservation"> & { output: string; start: number; end: number; lines: number })
  | (Observation<"IPythonRunCellObservation"> & {
      code: string;
      images: Part[];
      error: string | null;
      status: CmdStatus;
    })
  | (Observation<"FileReadObservation"> & { path: string; start: number; end: number; lines: number })
  | (Observation<"FileWriteObservation"> & { path: string; created: boolean })
  | (Observation<"FileEditObservation"> & { path: string; line: number })
  | (Observation<"BrowserOutputObservation"> & {
      url: string;
      title: string;
      screenshot: Part | null;
      marked_screenshot: Part | null;
      open_pages: string[];
      active_page: number;
      focused_element: string;
      last_action: string;
      last_action_error: string;
      messages: string[];
      infeasible: string;
      dialog: string;
      downloads: string[];
      console: string[];
    })
  | (Observation<"CodeSearchObservation"> & { query: string; blocks: string[] })
  | (Observation<"MCPCallObservation"> & { server: string; tool: string; images: Part[]; error: boolean })
  | (Observation<"AgentDelegateObservation"> & { agent: string; outcome: AgentState; outputs: JsonObject })
  | (Observation<"ForkObservation"> & {
      outcomes: { agent: string; outcome: AgentState; outputs: JsonObject; diff: string }[];
    })
  | Observation<"PlanObservation">
  | Observation<"UserRejectObservation">
  | (Observation<"AgentStateChangedObservation"> & { agent_state: AgentState; reason: string })
  | (Observation<"ErrorObservation"> & { error_id: string });

export type FactRecord =
  | (Event<"SessionStarted"> & {
      agent: string;
      model: string;
      sandbox: string;
      workspace: string;
      limits: Limits;
      confirmation: Confirmation;
      settings: JsonObject;
      resumed: boolean;
    })
  | Event<"StepStarted">
  | (Event<"CompletionEvent"> & {
      model: string;
      response: JsonObject;
      usage: Usage;
      cost: number | null;
      cost_source: CostSource;
      latency: number;
      first_token: number | null;
      finish_reason: string;
      failed_attempts: string[];
    })
  | (Event<"CondensationEvent"> & {
      first: number;
      last: number;
      summary: string;
      how: "collapse" | "summary" | "rewind";
    })
  | (Event<"LoopEvent"> & { first: number; rule: string; times: number; content: string })
  | (Event<"SnapshotEvent"> & { tree: string; size: number; changed: number; problem: string })
  | (Event<"ApprovalEvent"> & { action: number; allowed: boolean; comment: string; rule: string | null })
  | (Event<"SettingsChanged"> & {
      model: string | null;
      base_url: string | null;
      limits: Limits | null;
      confirmation: Confirmation | null;
    })
  | (Event<"NetworkAllowed"> & { hosts: string[] })
  | (Event<"EgressEvent"> & { host: string; port: number; allowed: boolean; reason: string })
  | (Event<"AgentDataEvent"> & { data: JsonObject })
  | (Event<"UnknownEvent"> & { unknown: JsonObject });

export type EventRecord = ActionRecord | ObservationRecord | FactRecord;
export type EventType = EventRecord["type"];

/** The event of one type: `Of<"CmdRunAction">`. */
export type Of<T extends EventType> = Extract<EventRecord, { type: T }>;

const KNOWN = new Set(
  (
    "MessageAction CmdRunAction JobAction OutputReadAction IPythonRunCellAction FileReadAction FileWriteAction " +
    "FileEditAction BrowseURLAction BrowseInteractiveAction CodeSearchAction MCPCallAction AgentDelegateAction " +
    "ForkAction AgentFinishAction AgentRejectAction AgentThinkAction AddTaskAction ModifyTaskAction " +
    "ChangeAgentStateAction CmdOutputObservation JobObservation OutputReadObservation IPythonRunCellObservation " +
    "FileReadObservation FileWriteObservation FileEditObservation BrowserOutputObservation CodeSearchObservation " +
    "MCPCallObservation AgentDelegateObservation ForkObservation PlanObservation UserRejectObservation " +
    "AgentStateChangedObservation ErrorObservation SessionStarted StepStarted CompletionEvent CondensationEvent " +
    "LoopEvent SnapshotEvent ApprovalEvent SettingsChanged NetworkAllowed EgressEvent AgentDataEvent"
  ).split(" "),
);

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
