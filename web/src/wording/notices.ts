/** The wording of events that are neither messages nor actions, in the conversation and the timeline. */

import type { EventRecord, Of } from "../events";
import type { Ending } from "./actions";
import { capital, words } from "./text";

export type Notice = Ending;

const CONDENSED = { collapse: "shortened", summary: "summarised", rewind: "removed" };

/** The notice of an event; null for an event that needs none. */
export function noticeOf(event: EventRecord): Notice | null {
  switch (event.type) {
    case "SessionStarted":
      return startNotice(event);
    case "CompletionEvent":
      return event.failed_attempts.length
        ? { tone: "warn", text: `Retried the model after: ${event.failed_attempts.join("; ")}` }
        : null;
    case "CondensationEvent":
      return quiet(`In the model's context, events ${event.first} to ${event.last} are ${CONDENSED[event.how]}.`);
    case "LoopEvent":
      return { tone: "warn", text: `The agent repeats itself: ${event.content}` };
    case "SnapshotEvent":
      return event.problem ? { tone: "warn", text: `No snapshot of the files: ${event.problem}` } : null;
    case "ApprovalEvent":
      return approvalNotice(event);
    case "SettingsChanged":
      return settingsNotice(event);
    case "NetworkAllowed":
      return quiet(`Changed: the sandbox may reach ${event.hosts.join(", ")}`);
    case "EgressEvent": {
      const result = `${event.host}:${event.port} ${event.allowed ? "reached" : "refused"}`;
      const text = `Network: ${result}${event.reason ? `: ${event.reason}` : ""}`;
      return { tone: event.allowed ? "quiet" : "warn", text };
    }
    case "ChangeAgentStateAction": {
      const source = event.source === "user" ? "you" : "the agent";
      if (event.agent_state === "running") return quiet(`Resumed by ${source}`);
      return { tone: "warn", text: `${capital(words(event.agent_state))} by ${source}` };
    }
    case "AgentStateChangedObservation":
      return stateNotice(event);
    case "ErrorObservation": // an error without a cause is about a malformed reply
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

function startNotice(event: Of<"SessionStarted">): Notice {
  if (event.sandbox === "none") {
    const text = "No sandbox: the agent's commands run on this machine, as you, with nothing between.";
    return { tone: "bad", text };
  }
  const image = event.settings["image"];
  const sandbox = typeof image === "string" ? `${event.sandbox} ${image}` : event.sandbox;
  const facts = [
    event.resumed && "Resumed",
    event.agent,
    event.model,
    sandbox,
    event.settings["in_place"] && "in place",
  ];
  return quiet(facts.filter(Boolean).join(" · "));
}

function approvalNotice(event: Of<"ApprovalEvent">): Notice {
  if (!event.allowed) return { tone: "warn", text: `You: no${event.comment ? `, ${event.comment}` : ""}` };
  return { tone: "good", text: `You: yes${event.rule === null ? "" : `, for this session: ${event.rule}`}` };
}

function settingsNotice(event: Of<"SettingsChanged">): Notice {
  const limits = Object.entries(event.limits ?? {}).filter(([, value]) => value !== null);
  const changes = [
    event.model && `model ${event.model}`,
    event.limits && `limits ${limits.map(([name, value]) => `${name} ${value}`).join(", ") || "none"}`,
    event.confirmation && `confirmation ${event.confirmation}`,
  ];
  return quiet(`Changed: ${changes.filter(Boolean).join("; ")}`);
}

function stateNotice(event: Of<"AgentStateChangedObservation">): Notice | null {
  if (event.agent_state === "running") return null;
  if (event.agent_state === "awaiting_user_confirmation")
    return { tone: "warn", text: `Needs your approval: ${event.content}` };
  const text = `${capital(words(event.agent_state))}: ${event.content}`;
  return { tone: event.agent_state === "error" ? "bad" : "warn", text };
}
