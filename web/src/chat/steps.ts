/** Steps and groups of steps in one line. */

import type { ActionRecord, ObservationRecord } from "../events";
import { describe, type Ending, outcomeOf } from "../wording/actions";
import { plural } from "../wording/format";
import { capital, exact } from "../wording/text";
import type { StepEntry } from "./entries";

interface StepLine {
  verb: string;
  /** What the action is about: a path, an address, or the first line of its command or code. */
  object: string;
  tone: Ending["tone"] | "busy";
  /** The outcome; "" if there is nothing to say. */
  outcome: string;
  /** The seconds from the action, or from its approval, to its result; null without a result. */
  seconds: number | null;
}

export type StepParts = Pick<StepEntry, "action" | "observation" | "question" | "approval">;

export function stepLine({ action, observation, question, approval }: StepParts): StepLine {
  const { verb, object, body } = describe(action);
  const line = { verb, object: planTask(action, observation) || object || exact(body.trim().split("\n", 1)[0] ?? "") };
  if (action.type === "AgentFinishAction") return { ...line, tone: "good", outcome: "", seconds: null };
  if (action.type === "AgentRejectAction") return { ...line, tone: "bad", outcome: "", seconds: null };
  if (observation === null) {
    const asks = question !== null && approval === null;
    return { ...line, tone: asks ? "warn" : "busy", outcome: asks ? "needs your approval" : "", seconds: null };
  }
  const { tone, text } = outcomeOf(observation);
  if (observation.type === "PlanObservation") return { ...line, tone, outcome: "", seconds: null };
  const begun = Date.parse((approval ?? action).timestamp);
  const seconds = Math.max(0, Date.parse(observation.timestamp) - begun) / 1000;
  return { ...line, tone, outcome: exact(text), seconds };
}

/** Whether the step has more to show than its line; the plan stands above the conversation. */
export function isFoldable({ action, observation }: StepParts): boolean {
  return observation?.type !== "PlanObservation" && !(observation === null && !describe(action).body);
}

/** A changed task of the plan: the goal instead of the number, which the plan of the result has. */
function planTask(action: ActionRecord, observation: ObservationRecord | null): string {
  if (action.type !== "ModifyTaskAction" || observation?.type !== "PlanObservation") return "";
  const line = observation.content.split("\n").find((line) => line.trim().slice(4).startsWith(`${action.task_id} `));
  const goal = line?.trim().slice(4 + action.task_id.length + 1);
  return goal ? exact(`${goal}: ${action.state.replace("_", " ")}`) : "";
}

interface GroupLine {
  /** Like "Ran 4 commands, read a.py, edited 2 files". */
  text: string;
  failed: number;
  seconds: number;
}

const KINDS: Record<string, [verb: string, noun: string]> = {
  CmdRunAction: ["ran", "command"],
  IPythonRunCellAction: ["ran", "cell"],
  RunCodeAction: ["ran", "cell"],
  CodeSearchAction: ["searched the code", "time"],
  RetrieveAction: ["searched the code", "time"],
  FileReadAction: ["read", "file"],
  FileEditAction: ["edited", "file"],
  FileWriteAction: ["wrote", "file"],
  BrowseURLAction: ["opened", "page"],
  BrowseInteractiveAction: ["acted in the browser", "time"],
  MCPCallAction: ["called", "tool"],
  AddTaskAction: ["planned", "task"],
  ModifyTaskAction: ["updated", "task"],
};
const OTHER = ["took", "other step"] as const;

/** Return the line of a group of finished steps. */
export function groupLine(steps: readonly StepEntry[]): GroupLine {
  const kinds = new Map<string, { verb: string; noun: string; count: number; objects: Set<string> }>();
  let failed = 0;
  let seconds = 0;
  for (const step of steps) {
    const line = stepLine(step);
    if (line.tone === "bad") failed += 1;
    seconds += line.seconds ?? 0;
    const [verb, noun] = KINDS[step.action.type] ?? OTHER;
    const kind = kinds.get(verb + noun) ?? { verb, noun, count: 0, objects: new Set() };
    kind.count += 1;
    if ("path" in step.action) kind.objects.add(step.action.path);
    kinds.set(verb + noun, kind);
  }
  const phrases = [...kinds.values()].map(({ verb, noun, count, objects }) => {
    const [only] = objects;
    if (objects.size === 1 && only !== undefined) return `${verb} ${exact(only)}`;
    return `${verb} ${plural(objects.size || count, noun)}`;
  });
  return { text: capital(phrases.join(", ")), failed, seconds };
}
