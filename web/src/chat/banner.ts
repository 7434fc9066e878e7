/** Where a session stands, in words, and what the user can do about it. */

import type { AgentState } from "../events";
import { dollars } from "./delegates";
import { outputsText } from "./text";

export type Deed = "interrupt" | "resume" | "rewind" | "limits" | "model";
export interface Standing {
  tone: "busy" | "asks" | "still" | "good" | "bad";
  title: string;
  detail: string;
  /** What helps, the likeliest first. */
  deeds: Deed[];
}
export interface Stand {
  state: AgentState;
  reason: string;
  why: string;
  outputs: Record<string, unknown>;
}

const PAUSED: Record<string, { title: string; hint: string; deeds: Deed[] }> = {
  limit: { title: "Paused at a limit", hint: "Raise it to go on.", deeds: ["limits"] },
  stuck: {
    title: "Paused: the agent repeats itself",
    hint: "", // the log says what can be done
    deeds: ["rewind", "resume"],
  },
  context: {
    title: "Paused: the conversation is too long for the model",
    hint: "Choose a model with a larger context window.",
    deeds: ["model", "resume"],
  },
  model: {
    title: "Paused: the model cannot be used",
    hint: "Try again, or choose another model.",
    deeds: ["resume", "model"],
  },
  user: { title: "Paused", hint: "Go on, or send a message.", deeds: ["resume"] },
};

const FAILED: Record<string, { hint: string; deeds: Deed[] }> = {
  model: { hint: "Look at the model's name, its key and its address; then try again.", deeds: ["resume", "model"] },
  sandbox: { hint: "`handiwork doctor` tells what the sandbox lacks; then try again.", deeds: ["resume"] },
};

export function standing({ state, reason, why, outputs }: Stand): Standing {
  switch (state) {
    case "loading":
      return { tone: "busy", title: "Starting", detail: "", deeds: ["interrupt"] };
    case "running":
      return { tone: "busy", title: "Working", detail: "", deeds: ["interrupt"] };
    case "awaiting_user_input":
      return { tone: "asks", title: "The agent waits for your answer", detail: "", deeds: [] };
    case "awaiting_user_confirmation":
      return {
        tone: "asks",
        title: "The agent asks you first",
        detail: "",
        deeds: [],
      };
    case "paused": {
      const { title, hint, deeds } = PAUSED[reason] ?? PAUSED["user"]!;
      // Of a pause by the user the log says only that the user paused it.
      return { tone: "still", title, detail: sentences(reason in PAUSED && reason !== "user" ? why : "", hint), deeds };
    }
    case "stopped":
      return { tone: "still", title: "Stopped", detail: "Send a message to go on.", deeds: [] };
    case "finished":
      return { tone: "good", title: "Finished", detail: "Send a message to go on.", deeds: [] };
    case "rejected":
      return {
        tone: "bad",
        title: "The agent declined the task",
        detail: sentences(outputsText(outputs), "Send a message to go on."),
        deeds: [],
      };
    case "error": {
      const { hint, deeds } = FAILED[reason] ?? { hint: "Try again, or send a message.", deeds: ["resume"] };
      return { tone: "bad", title: "It failed", detail: sentences(why, hint), deeds };
    }
  }
}

/** Seconds without an event from which on they are told. */
const LONG = 3;

/** What a working session does: what it waits for or writes, for how long, and what was spent. */
export function doing(
  live: { status: string; text: string },
  spent: { iterations: number; cost: { usd: number } },
  seconds: number,
): string {
  const writing = live.text ? `writing, about ${Math.ceil(live.text.length / 4)} tokens` : "";
  const steps = `${spent.iterations} ${spent.iterations === 1 ? "step" : "steps"}`;
  const cost = spent.cost.usd ? dollars(spent.cost.usd) : "";
  return [live.status || writing, seconds >= LONG ? `${seconds} s` : "", steps, cost].filter(Boolean).join(" · ");
}

function sentences(...parts: string[]): string {
  return parts
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .map((part) => (/[.!?:]$/.test(part) ? part : `${part}.`))
    .join(" ");
}
