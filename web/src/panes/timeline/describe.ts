/** An event in one line. */

import { type EventRecord, isAction, isObservation, type Json } from "../../events";
import { line, money } from "../common/say";

export interface Described {
  /** What sort of thing happened. */
  what: string;
  text: string;
  tone: "action" | "observation" | "user" | "trouble" | "record";
}

export function describe(event: EventRecord): Described {
  return { what: what(event), text: line(text(event), 200), tone: tone(event) };
}

/** The type's name without its ending, in words: CmdRunAction is "cmd run". */
function what(event: EventRecord): string {
  if (event.type === "MessageAction") return event.source === "user" ? "you" : "message";
  return event.type
    .replace(/(Action|Observation|Event)$/, "")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();
}

function tone(event: EventRecord): Described["tone"] {
  if (event.type === "ErrorObservation" || event.type === "LoopEvent") return "trouble";
  if (event.type === "CmdOutputObservation" && event.exit_code) return "trouble";
  if (event.type === "MessageAction" && event.source === "user") return "user";
  if (event.type === "ApprovalEvent" || event.type === "UserRejectObservation") return "user";
  if (isAction(event)) return "action";
  return isObservation(event) ? "observation" : "record";
}

function text(event: EventRecord): string {
  switch (event.type) {
    case "CmdRunAction":
      return event.command;
    case "JobAction":
      return `${event.operation} ${event.job}`;
    case "IPythonRunCellAction":
      return event.code;
    case "FileReadAction":
    case "FileWriteAction":
    case "FileEditAction":
    case "FileReadObservation":
    case "FileWriteObservation":
    case "FileEditObservation":
      return event.path;
    case "OutputReadAction":
      return `${event.output} from line ${event.start}`;
    case "BrowseURLAction":
      return event.url;
    case "BrowseInteractiveAction":
      return event.browser_actions;
    case "BrowserOutputObservation":
      return event.last_action_error || [event.title, event.url].filter(Boolean).join(" · ");
    case "AgentDelegateAction":
      return `${event.agent}: ${said(event.inputs)}`;
    case "ForkAction":
      return event.children.map(([agent]) => agent).join(", ");
    case "AgentFinishAction":
    case "AgentRejectAction":
      return said(event.outputs);
    case "AgentThinkAction":
      return event.thought;
    case "AddTaskAction":
      return event.goal;
    case "ModifyTaskAction":
      return `${event.task_id} is ${event.state.replace("_", " ")}`;
    case "ChangeAgentStateAction":
      return event.agent_state;
    case "AgentStateChangedObservation":
      return [event.agent_state.replaceAll("_", " "), event.content].filter(Boolean).join(": ");
    case "CmdOutputObservation":
      return [event.exit_code ? `exit code ${event.exit_code}` : event.status, event.content].join(": ");
    case "AgentDelegateObservation":
      return `${event.agent} ${event.outcome}: ${said(event.outputs)}`;
    case "ForkObservation":
      return event.outcomes.map((child) => `${child.agent} ${child.outcome}`).join(", ");
    default:
      return isObservation(event) || event.type === "MessageAction" ? event.content : fact(event);
  }
}

function fact(event: EventRecord): string {
  switch (event.type) {
    case "SessionStarted":
      return [event.resumed ? "goes on" : "", event.agent, event.model].filter(Boolean).join(", ");
    case "CompletionEvent": {
      const { input, cache_read, cache_write, output } = event.usage;
      const cost = event.cost === null ? "" : `, ${money(event.cost)}`;
      return `${input + cache_read + cache_write} tokens in, ${output} out${cost}`;
    }
    case "CondensationEvent":
      return `${event.how} of events ${event.first} to ${event.last}`;
    case "LoopEvent":
      return event.content;
    case "SnapshotEvent":
      return event.problem || `${event.changed} ${event.changed === 1 ? "path" : "paths"} changed`;
    case "ApprovalEvent":
      return [event.allowed ? "yes" : "no", event.comment].filter(Boolean).join(": ");
    case "SettingsChanged":
      return [event.model, event.confirmation].filter(Boolean).join(", ") || "limits";
    case "NetworkAllowed":
      return event.hosts.join(", ");
    case "EgressEvent":
      return `${event.host}:${event.port} ${event.allowed ? "allowed" : "refused"}`;
    default:
      return "";
  }
}

/** What an object of inputs or outputs says: its texts, or all of it. */
function said(values: Record<string, Json>): string {
  const texts = Object.values(values).filter((value) => typeof value === "string");
  return texts.length > 0 ? texts.join(" ") : JSON.stringify(values);
}
