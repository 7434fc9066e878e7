/** The session's state in words, and the commands that help in it. */

import type { SessionView } from "../../generated/types";
import { money, plural } from "../wording/format";
import { outputsText, sentences } from "../wording/text";

export type Command = "interrupt" | "resume" | "rewind" | "limits" | "model";
interface Status {
  tone: "busy" | "asks" | "still" | "good" | "bad";
  title: string;
  detail: string;
  /** The most useful one first. */
  commands: Command[];
}

const PAUSED: Record<string, { title: string; hint: string; commands: Command[] }> = {
  limit: { title: "Paused at a limit", hint: "Change the limit to resume.", commands: ["limits"] },
  stuck: {
    title: "Paused: the agent repeats itself",
    hint: "", // the log has the hint
    commands: ["rewind", "resume"],
  },
  context: {
    title: "Paused: the conversation exceeds the model's context window",
    hint: "Choose a model with a larger context window.",
    commands: ["model", "resume"],
  },
  model: {
    title: "Paused: the model failed",
    hint: "Resume, or choose another model.",
    commands: ["resume", "model"],
  },
  user: { title: "Paused", hint: "Resume, or send a message.", commands: ["resume"] },
};

const FAILED: Record<string, { hint: string; commands: Command[] }> = {
  model: { hint: "Check the model's name, key and base URL, then resume.", commands: ["resume", "model"] },
  sandbox: { hint: "`handiwork doctor` checks the sandbox; then resume.", commands: ["resume"] },
};

const INTERRUPTED = "The process that ran it ended. Nothing that it logged is lost: resume, or send a message.";
const CONTINUE = "Send a message to continue.";

export function statusOf({
  state,
  reason,
  why,
  outputs,
  interrupted,
}: Pick<SessionView, "state" | "reason" | "why" | "outputs" | "interrupted">): Status {
  if (interrupted) {
    if (state === "loading")
      return { tone: "still", title: "No task yet", detail: "Send a message to begin.", commands: [] };
    return { tone: "still", title: "Interrupted", detail: INTERRUPTED, commands: ["resume"] };
  }
  switch (state) {
    case "loading":
      return { tone: "busy", title: "Starting", detail: "", commands: ["interrupt"] };
    case "running":
      return { tone: "busy", title: "Running", detail: "", commands: ["interrupt"] };
    case "awaiting_user_input":
      return { tone: "asks", title: "The agent waits for your answer", detail: "", commands: [] };
    case "awaiting_user_confirmation":
      return { tone: "asks", title: "The agent needs your approval", detail: "", commands: [] };
    case "paused": {
      const known = reason !== null && reason !== "user" && reason in PAUSED;
      const { title, hint, commands } = PAUSED[known ? reason : "user"]!;
      return { tone: "still", title, detail: sentences(known ? why : "", hint), commands };
    }
    case "stopped":
      return { tone: "still", title: "Stopped", detail: CONTINUE, commands: [] };
    case "finished":
      return { tone: "good", title: "Finished", detail: CONTINUE, commands: [] };
    case "rejected": {
      const detail = sentences(outputsText(outputs), CONTINUE);
      return { tone: "bad", title: "The agent rejected the task", detail, commands: [] };
    }
    case "error": {
      const { hint, commands } = FAILED[reason ?? ""] ?? { hint: "Resume, or send a message.", commands: ["resume"] };
      return { tone: "bad", title: "Failed", detail: sentences(why, hint), commands };
    }
  }
}

/** Seconds without an event before the duration is shown. */
const LONG = 3;

/** The operation of a running session, its duration, and the session's steps and cost. */
export function progressText(
  live: { status: string; text: string },
  { iterations, cost }: { iterations: number; cost: { usd: number } },
  seconds: number,
): string {
  const writing = live.text ? `writing, about ${Math.ceil(live.text.length / 4)} tokens` : "";
  const facts = [
    live.status || writing,
    seconds >= LONG && `${seconds} s`,
    plural(iterations, "step"),
    cost.usd && money(cost.usd),
  ];
  return facts.filter(Boolean).join(" · ");
}
