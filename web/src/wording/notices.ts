/** The wording of events that are neither messages nor actions, in the conversation and the timeline. */

import type { EventRecord, Of } from "../events";
import { LIMITS } from "../chat/limits";
import type { Ending } from "./actions";
import { duration, plural } from "./format";
import { stateName } from "./state";
import { bounded, capital, words } from "./text";

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
    case "KnowledgeEvent":
      return quiet(`Knowledge ${event.name} joined, for the word ${event.trigger} (${event.place})`);
    case "ThrottledEvent":
      return { tone: "warn", text: event.content };
    case "SnapshotEvent":
      return event.problem ? { tone: "warn", text: `No snapshot of the files: ${event.problem}` } : null;
    case "ApprovalEvent":
      return approvalNotice(event);
    case "SettingsChanged":
      return settingsNotice(event);
    case "NetworkAllowed":
      return quiet(`Changed: the sandbox may reach ${event.hosts.join(", ")}${event.once ? " once" : ""}`);
    case "PermissionsRevoked":
      return quiet(`Taken back: ${[...event.rules, ...event.hosts].join(", ")}`);
    case "ContextLoaded": {
      const tokens = event.tokens ? `, ${event.tokens} tokens in every prompt` : "";
      return quiet(`Loaded ${event.path}${tokens}${event.note ? ` (${event.note})` : ""}`);
    }
    case "ContextWithheld":
      return { tone: "warn", text: capital(event.content) };
    case "EgressEvent": {
      const result = `${event.host}:${event.port} ${event.allowed ? "reached" : "refused"}`;
      const text = `Network: ${result}${event.reason ? `: ${event.reason}` : ""}`;
      return { tone: event.allowed ? "quiet" : "warn", text };
    }
    case "HookEvent":
      return hookNotice(event);
    case "UnusedHooks":
      return { tone: "warn", text: `Hooks that never ran in this session: ${event.hooks.join(", ")}` };
    case "MCPServerEvent":
      return serverNotice(event);
    case "ChangeAgentStateAction": {
      const source = event.source === "user" ? "you" : "the agent";
      if (event.agent_state === "running") return quiet(`Resumed by ${source}`);
      return { tone: "warn", text: `${capital(stateName(event.agent_state))} by ${source}` };
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

function serverNotice(event: Of<"MCPServerEvent">): Notice {
  if (event.state === "ready") return quiet(`MCP server ${event.server} is ready: ${event.tools.length} tools`);
  if (event.state === "starting") return quiet(`MCP server ${event.server} is still starting`);
  const text = [`MCP server ${event.server} ${event.state}: ${event.content}`, event.errors].filter(Boolean).join("\n");
  return { tone: "warn", text };
}

function approvalNotice(event: Of<"ApprovalEvent">): Notice {
  if (!event.allowed) return { tone: "warn", text: `You: no${event.comment ? `, ${event.comment}` : ""}` };
  return { tone: "good", text: `You: yes${event.rule === null ? "" : `, for this session: ${event.rule}`}` };
}

const HOOK_PROBLEMS = { timeout: "it took too long", not_started: "it could not start", interrupted: "interrupted" };
const HOOK_EFFECTS = {
  refused: "the action is refused",
  sent_back: "the agent must go on",
  let_through: "the agent was sent back often enough, so it may finish",
};
/** The most lines of a hook's output in a notice. */
const HOOK_LINES = 12;

function hookNotice(event: Of<"HookEvent">): Notice {
  const { hook, point, where, problem, effect, exit_code } = event;
  const place = where === "host" ? "on your machine, " : "";
  const outcome = problem ? HOOK_PROBLEMS[problem] : `exit code ${exit_code}`;
  const facts = [`Hook ${hook} (${place}${words(point)}): ${outcome}, ${duration(event.duration)}`];
  if (effect) facts.push(HOOK_EFFECTS[effect]);
  const { head, omitted, tail } = bounded(event.output, HOOK_LINES);
  const text = [facts.join("; "), head, omitted && `… ${plural(omitted, "more line")} …`, tail];
  return { tone: exit_code === 0 ? "quiet" : "warn", text: text.filter(Boolean).join("\n") };
}

function settingsNotice(event: Of<"SettingsChanged">): Notice {
  const limits = LIMITS.filter(({ name }) => event.limits?.[name] != null).map(
    ({ name, unit }) => `${event.limits?.[name]} ${unit}`,
  );
  const changes = [
    event.model && `model ${event.model}`,
    event.limits && `limits ${limits.join(", ") || "none"}`,
    event.confirmation && `confirmation ${event.confirmation}`,
    event.plan_mode != null && `plan mode ${event.plan_mode ? "on" : "off"}`,
  ];
  return quiet(`Changed: ${changes.filter(Boolean).join("; ")}`);
}

function stateNotice(event: Of<"AgentStateChangedObservation">): Notice | null {
  if (event.agent_state === "running") return null;
  const text = `${capital(stateName(event.agent_state))}: ${event.content}`;
  return { tone: event.agent_state === "error" ? "bad" : "warn", text };
}
