/** The wording of actions and their outcomes, in cards, questions, the terminal and the timeline. */

import { filesOf } from "../components/diff/patch";
import { type ActionRecord, type CmdStatus, type ObservationRecord, ownFields } from "../events";
import { bytes, plural } from "./format";
import { capital, exact, jsonText, outputsText, plain, shortName, taskText, words } from "./text";

interface Description {
  verb: string;
  /** One line, like a path or an address; may be empty. */
  object: string;
  /** The command, code, text or task; may be empty. */
  body: string;
  /** The body's programming language. */
  language: string;
}
export interface Ending {
  tone: "quiet" | "good" | "warn" | "bad";
  text: string;
}

export function describe(action: ActionRecord): Description {
  const { verb, object = "", body = "", language = "" } = parts(action);
  return { verb, object: exact(object), body, language };
}

function parts(action: ActionRecord): Pick<Description, "verb"> & Partial<Description> {
  switch (action.type) {
    case "CmdRunAction": {
      const verb = action.is_input ? "Type" : action.background ? "Start" : "Run";
      return action.command || action.is_input
        ? { verb, body: action.command, language: "bash" }
        : { verb: "Wait for more output" };
    }
    case "JobAction":
      return action.operation === "list"
        ? { verb: "List jobs" }
        : { verb: capital(action.operation), object: action.job };
    case "OutputReadAction": {
      const matching = action.pattern ? `, matching ${action.pattern}` : "";
      return { verb: "Read output", object: `${action.output}${lines(action.start, action.end)}${matching}` };
    }
    case "CodeSearchAction":
    case "CodeBlocksAction":
    case "RetrieveAction":
      return { verb: "Search the code", object: action.query.trim().replace(/\s*\n\s*/g, "; ") };
    case "DescribeCodebaseAction":
      return { verb: "Describe the codebase", object: action.folders.join(", ") };
    case "RecallCodeAction":
      return { verb: "Recall earlier tasks" };
    case "RecallDocstringsAction":
      return { verb: "Recall docstrings" };
    case "RememberDocstringsAction":
      return { verb: "Remember docstrings" };
    case "RememberCodeAction":
      return { verb: "Remember the solution" };
    case "SummarizeCodeAction":
      return { verb: "Keep the solution", body: action.code, language: "python" };
    case "IPythonRunCellAction":
    case "RunCodeAction":
      return { verb: "Run in the notebook", body: action.code, language: "python" };
    case "WorkspaceOverviewAction":
      return { verb: "Look at the workspace" };
    case "FileReadAction":
      return { verb: "Read", object: `${action.path}${lines(action.start, action.end)}` };
    case "FileWriteAction":
      return { verb: "Write", object: action.path, body: action.content, language: extension(action.path) };
    case "FileEditAction":
      return { verb: "Edit", object: action.path };
    case "BrowseURLAction":
      return { verb: "Browse", object: action.url };
    case "BrowseInteractiveAction":
      return { verb: "Act in the browser", body: action.browser_actions, language: "python" };
    case "MCPCallAction": {
      const object = `${action.server} ${action.tool}`;
      return { verb: "Call", object, body: jsonText(action.arguments), language: "json" };
    }
    case "MCPToolsAction":
      return { verb: "Look up tools", object: [action.server, ...action.tools].join(" ") };
    case "AgentDelegateAction":
      return { verb: "Delegate to", object: shortName(action.agent), body: taskText(action.inputs) };
    case "ForkAction":
      return { verb: "Delegate to", object: action.children.map(([agent]) => shortName(agent)).join(", ") };
    case "AgentFinishAction":
      return { verb: "Finished", body: outputsText(action.outputs) };
    case "AgentRejectAction":
      return { verb: "Rejected", body: outputsText(action.outputs) };
    case "AgentThinkAction":
      return { verb: "Think", body: action.thought };
    case "AddTaskAction":
      return { verb: "Plan", object: action.parent ? `${action.goal}, below ${action.parent}` : action.goal };
    case "ModifyTaskAction":
      return { verb: "Plan", object: `${action.task_id} is ${words(action.state)}` };
    case "MessageAction":
      return { verb: "Say", body: action.content };
    case "ChangeAgentStateAction":
      return { verb: "Ask for", object: words(action.agent_state) };
    default: {
      const own = action as ActionRecord;
      return { verb: own.type.replace(/Action$/, ""), body: jsonText(ownFields(own)), language: "json" };
    }
  }
}

const STATUS: Partial<Record<CmdStatus, string>> = {
  running: "still running",
  input: "waiting for input",
  exited: "the shell exited and was restarted",
  interrupted: "interrupted",
  time_limit: "stopped by the session’s time limit",
  timeout: "stopped by its timeout",
  background: "running in the background",
};

function fault({ syntax_error, undefined_names }: { syntax_error: string; undefined_names: string[] }): Ending | null {
  const text = syntax_error ? `syntax error, ${syntax_error}` : undefined_names.join("; ");
  return text ? { tone: "warn", text } : null;
}

/** The outcome of an action in a few words, or null for the usual one. */
export function endingOf(observation: ObservationRecord): Ending | null {
  switch (observation.type) {
    case "CmdOutputObservation": {
      const { status, job, limit, exit_code } = observation;
      const facts = [
        job && status === "background" ? `${STATUS[status]} as ${job}` : STATUS[status],
        limit && `reached the limit: ${limit}`,
        exit_code && `exit ${exit_code}`,
      ].filter(Boolean);
      const tone = exit_code ? "bad" : status === "background" ? "quiet" : "warn";
      return facts.length > 0 ? { tone, text: facts.join(", ") } : null;
    }
    case "JobObservation":
      if (observation.exit_code) return { tone: "bad", text: `exit ${observation.exit_code}` };
      return observation.status ? { tone: "quiet", text: observation.status } : null;
    case "IPythonRunCellObservation":
    case "RunCodeObservation": {
      const text = observation.error || STATUS[observation.status];
      return text ? { tone: observation.error ? "bad" : "warn", text } : null;
    }
    case "MCPCallObservation":
      return observation.error ? { tone: "bad", text: "failed" } : null;
    case "FileReadObservation":
    case "OutputReadObservation":
      return { tone: "quiet", text: `lines ${observation.start}–${observation.end} of ${observation.lines}` };
    case "FileEditObservation":
      return fault(observation);
    case "FileWriteObservation": {
      const found = fault(observation);
      if (found) return found;
      if (observation.deleted > 0)
        return {
          tone: "quiet",
          text: `written, ${observation.deleted} of ${plural(observation.lines, "line")} deleted`,
        };
      return { tone: "quiet", text: observation.created ? "created" : "written" };
    }
    case "BrowserOutputObservation":
      return observation.last_action_error ? { tone: "bad", text: "failed" } : null;
    case "AgentDelegateObservation":
      return { tone: observation.outcome === "finished" ? "good" : "warn", text: words(observation.outcome) };
    case "ForkObservation": {
      const outcomes = observation.outcomes.map(({ outcome }) => outcome);
      const count = (kind: string) => outcomes.filter((outcome) => outcome === kind).length;
      const parts = [...new Set(outcomes)].map((kind) =>
        outcomes.length > 1 ? `${count(kind)} ${words(kind)}` : words(kind),
      );
      return { tone: count("finished") > 0 ? "good" : "warn", text: parts.join(", ") };
    }
    case "UserRejectObservation":
    case "HookRejectObservation":
      return { tone: "warn", text: "refused" };
    case "ErrorObservation":
      return { tone: "bad", text: "error" };
    default:
      return null;
  }
}

/** The outcome of an action in a few words, also the usual one; "" if there is nothing to say. */
export function outcomeOf(observation: ObservationRecord): Ending {
  return endingOf(observation) ?? { tone: "quiet", text: usualOutcome(observation) };
}

function usualOutcome(observation: ObservationRecord): string {
  switch (observation.type) {
    case "FileEditObservation": {
      const [file] = filesOf(observation.content);
      return file ? `+${file.added} −${file.deleted}` : "";
    }
    case "BrowserOutputObservation":
      return exact(observation.title || observation.url);
    case "PlanObservation":
      return "";
    default: {
      const pictures = "images" in observation ? observation.images.length : 0;
      if (pictures > 0) return plural(pictures, "picture");
      if (observation.blob !== null) return bytes(observation.size);
      const text = plain(observation.content).trim();
      if (!text) return "no output";
      return text.includes("\n") ? plural(text.split("\n").length, "line") : text.length > 40 ? "1 line" : text;
    }
  }
}

function lines(start: number, end: number | null): string {
  return start === 1 && end === null ? "" : `, lines ${start}–${end ?? "end"}`;
}

function extension(path: string): string {
  return /\.([^./]+)$/.exec(path)?.[1] ?? "";
}
