/** The lines between the cards: what happened to the session that is neither said nor done by an agent. */

import type { EventRecord, Of } from "../events";
import { words } from "./text";

export interface Notice {
  tone: "quiet" | "good" | "warn" | "bad";
  text: string;
}

const CONDENSED = { collapse: "shortened", summary: "summed up", rewind: "taken back" };

/** What there is to say of an event, null for those that say nothing to a person. */
export function noticeOf(event: EventRecord): Notice | null {
  switch (event.type) {
    case "SessionStarted":
      return started(event);
    case "CompletionEvent":
      return event.failed_attempts.length
        ? { tone: "warn", text: `The model was called again after: ${event.failed_attempts.join("; ")}` }
        : null;
    case "CondensationEvent":
      return quiet(`For the model, events ${event.first} to ${event.last} are ${CONDENSED[event.how]}.`);
    case "LoopEvent":
      return { tone: "warn", text: `It repeats itself: ${event.content}` };
    case "SnapshotEvent":
      return event.problem ? { tone: "warn", text: `The files could not be kept: ${event.problem}` } : null;
    case "ApprovalEvent":
      return answered(event);
    case "SettingsChanged":
      return changed(event);
    case "NetworkAllowed":
      return quiet(`The sandbox may reach ${event.hosts.join(", ")}.`);
    case "EgressEvent": {
      const what = `${event.host}:${event.port} ${event.allowed ? "reached" : "refused"}`;
      const text = `Network: ${what}${event.reason ? `: ${event.reason}` : ""}`;
      return { tone: event.allowed ? "quiet" : "warn", text };
    }
    case "ChangeAgentStateAction":
      return asked(event);
    case "AgentStateChangedObservation":
      return stands(event);
    case "ErrorObservation": // one without an action is about a reply that made no sense
      return event.cause === null ? { tone: "bad", text: event.content } : null;
    case "UnknownEvent":
      return quiet(`An event of a newer version: ${String(event.unknown["type"] ?? "?")}`);
    default:
      return null;
  }
}

function quiet(text: string): Notice {
  return { tone: "quiet", text };
}

function started(event: Of<"SessionStarted">): Notice {
  if (event.sandbox === "none") {
    const text = "No sandbox: the agent's commands run on this machine, as you, with nothing between.";
    return { tone: "bad", text };
  }
  const image = event.settings["image"];
  const sandbox = typeof image === "string" ? `${event.sandbox} ${image}` : event.sandbox;
  const how = event.settings["in_place"] ? ["in place"] : [];
  return quiet([event.agent, event.model, sandbox, ...how].join(" · "));
}

function answered(event: Of<"ApprovalEvent">): Notice {
  if (!event.allowed) return { tone: "warn", text: `You: no${event.comment ? `, ${event.comment}` : ""}` };
  const rule = event.rule === null ? "" : `, and from now on: ${event.rule}`;
  return { tone: "good", text: `You: yes${rule}` };
}

function changed(event: Of<"SettingsChanged">): Notice {
  const limits = Object.entries(event.limits ?? {}).filter(([, value]) => value !== null);
  const parts = [
    event.model && `model ${event.model}`,
    event.limits && `limits ${limits.map(([name, value]) => `${name} ${value}`).join(", ") || "none"}`,
    event.confirmation && `confirmation ${event.confirmation}`,
  ];
  return quiet(`Changed: ${parts.filter(Boolean).join("; ")}`);
}

function asked(event: Of<"ChangeAgentStateAction">): Notice | null {
  const who = event.source === "user" ? "you" : "the agent";
  if (event.agent_state === "running") return quiet(`Resumed by ${who}`);
  return { tone: "warn", text: `${capital(words(event.agent_state))} by ${who}` };
}

function stands(event: Of<"AgentStateChangedObservation">): Notice | null {
  if (event.agent_state === "running") return null;
  if (event.agent_state === "awaiting_user_confirmation")
    return { tone: "warn", text: `Asks you first: ${event.content}` };
  const text = `${capital(words(event.agent_state))}: ${event.content}`;
  return { tone: event.agent_state === "error" ? "bad" : "warn", text };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
