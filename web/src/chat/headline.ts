/** The first line of an action's card: what it does in a word, on what, and how it ended. */

import type { ActionRecord, CmdStatus, ObservationRecord } from "../events";
import { exact, shortName, words } from "./text";

export interface Ending {
  tone: "quiet" | "good" | "warn" | "bad";
  text: string;
}
export interface Headline {
  verb: string;
  /** One line: a path, an address; "" where the card's body says it all. */
  object: string;
}

export function headline(action: ActionRecord): Headline {
  const { verb, object = "" } = parts(action);
  return { verb, object: exact(object) };
}

function parts(action: ActionRecord): { verb: string; object?: string } {
  switch (action.type) {
    case "CmdRunAction":
      if (action.is_input) return { verb: "Input" };
      if (!action.command) return { verb: "Waits for more output" };
      return { verb: action.background ? "Shell, in the background" : "Shell" };
    case "JobAction":
      return {
        verb: action.operation === "list" ? "List jobs" : `${capital(action.operation)} job`,
        object: action.job,
      };
    case "OutputReadAction": {
      const matching = action.pattern ? `, matching ${action.pattern}` : "";
      return { verb: "Read output", object: `${action.output}${lines(action.start, action.end)}${matching}` };
    }
    case "IPythonRunCellAction":
      return { verb: "Python" };
    case "FileReadAction":
      return { verb: "Read", object: `${action.path}${lines(action.start, action.end)}` };
    case "FileWriteAction":
      return { verb: "Write", object: action.path };
    case "FileEditAction":
      return { verb: "Edit", object: action.path };
    case "BrowseURLAction":
      return { verb: "Open page", object: action.url };
    case "BrowseInteractiveAction":
      return { verb: "Browser" };
    case "AgentDelegateAction":
      return { verb: "Delegate to", object: shortName(action.agent) };
    case "ForkAction":
      return { verb: "Side by side", object: `${action.children.length} subtasks` };
    case "AgentFinishAction":
      return { verb: "Finished" };
    case "AgentRejectAction":
      return { verb: "Declined" };
    case "AgentThinkAction":
      return { verb: "Thought" };
    case "AddTaskAction":
      return { verb: "Plan", object: action.parent ? `add below ${action.parent}` : "add" };
    case "ModifyTaskAction":
      return { verb: "Plan", object: `${action.task_id} is ${words(action.state)}` };
    case "MessageAction":
      return { verb: "Message" };
    case "ChangeAgentStateAction":
      return { verb: capital(words(action.agent_state)) };
    default:
      return { verb: (action as ActionRecord).type.replace(/Action$/, "") };
  }
}

const STATUS: Partial<Record<CmdStatus, string>> = {
  running: "goes on running",
  input: "waits for input",
  exited: "the shell ended and was started again",
  interrupted: "interrupted",
  timeout: "stopped after its time",
};

/** How the action ended, null where there is nothing to remark. */
export function ending(observation: ObservationRecord): Ending | null {
  switch (observation.type) {
    case "CmdOutputObservation": {
      if (observation.exit_code) return { tone: "bad", text: `exit ${observation.exit_code}` };
      if (observation.status === "background") return { tone: "quiet", text: observation.job };
      const text = STATUS[observation.status];
      return text ? { tone: "warn", text } : null;
    }
    case "JobObservation":
      if (!observation.status) return null;
      if (observation.exit_code) return { tone: "bad", text: `exit ${observation.exit_code}` };
      return { tone: "quiet", text: observation.status };
    case "IPythonRunCellObservation": {
      if (observation.error) return { tone: "bad", text: observation.error };
      const text = STATUS[observation.status];
      return text ? { tone: "warn", text } : null;
    }
    case "FileReadObservation":
    case "OutputReadObservation":
      return { tone: "quiet", text: `lines ${observation.start}–${observation.end} of ${observation.lines}` };
    case "FileWriteObservation":
      return { tone: "quiet", text: observation.created ? "created" : "written" };
    case "BrowserOutputObservation":
      return observation.last_action_error ? { tone: "bad", text: "not done to its end" } : null;
    case "AgentDelegateObservation":
      return { tone: observation.outcome === "finished" ? "good" : "warn", text: words(observation.outcome) };
    case "UserRejectObservation":
      return { tone: "warn", text: "not allowed" };
    case "ErrorObservation":
      return { tone: "bad", text: "error" };
    default:
      return null;
  }
}

function lines(start: number, end: number | null): string {
  return start === 1 && end === null ? "" : `, lines ${start}–${end ?? "end"}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
