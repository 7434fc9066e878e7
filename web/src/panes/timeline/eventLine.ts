/** An event in one line. */

import { type EventRecord, isAction, isObservation, type ObservationRecord } from "../../events";
import { describe, endingOf, outcomeOf } from "../../wording/actions";
import { money, plural } from "../../wording/format";
import { noticeOf } from "../../wording/notices";
import { stateName } from "../../wording/state";
import { capital, firstLine, outputsText, words } from "../../wording/text";
import { promptTokens } from "../cost/totals";

interface EventLine {
  /** An action's verb, or the type of another event in words. */
  kind: string;
  text: string;
  tone: "action" | "observation" | "user" | "trouble" | "record";
}

/** An action and its result, if there is one, or another event. */
export function entryLine(event: EventRecord, result: EventRecord | null): EventLine & { outcome: string } {
  const line = eventLine(event);
  if (result === null || !isObservation(result)) return { ...line, outcome: "" };
  const { tone, text } = outcomeOf(result);
  return { ...line, tone: tone === "bad" ? "trouble" : line.tone, outcome: text };
}

export function eventLine(event: EventRecord): EventLine {
  return { kind: kindOf(event), text: firstLine(textOf(event), 200), tone: toneOf(event) };
}

function kindOf(event: EventRecord): string {
  if (event.type === "MessageAction" && event.source === "user") return "You";
  if (isAction(event)) return describe(event).verb;
  const words = event.type.replace(/(Observation|Event)$/, "").replace(/([a-z])([A-Z])/g, "$1 $2");
  return capital(words.toLowerCase());
}

function toneOf(event: EventRecord): EventLine["tone"] {
  if (event.type === "MessageAction" && event.source === "user") return "user";
  if (event.type === "ApprovalEvent" || event.type === "UserRejectObservation") return "user";
  if (isAction(event)) return "action";
  const ending = isObservation(event) ? endingOf(event) : noticeOf(event);
  if (ending?.tone === "bad" || event.type === "LoopEvent") return "trouble";
  return isObservation(event) ? "observation" : "record";
}

function textOf(event: EventRecord): string {
  if (isAction(event)) {
    const { object, body } = describe(event);
    return object || body;
  }
  const notice = noticeOf(event);
  if (notice !== null) return notice.text;
  if (isObservation(event)) return [endingOf(event)?.text, resultText(event)].filter(Boolean).join(": ");
  if (event.type === "SnapshotEvent") return `${plural(event.changed, "path")} changed`;
  if (event.type !== "CompletionEvent") return "";
  const cost = event.cost === null ? "" : `, ${money(event.cost)}`;
  return `${promptTokens(event.usage)} tokens in, ${event.usage.output} out${cost}`;
}

function resultText(event: ObservationRecord): string {
  switch (event.type) {
    case "FileReadObservation":
    case "FileWriteObservation":
    case "FileEditObservation":
      return event.path;
    case "BrowserOutputObservation":
      return event.last_action_error || [event.title, event.url].filter(Boolean).join(" · ");
    case "AgentStateChangedObservation":
      return stateName(event.agent_state);
    case "AgentDelegateObservation":
      return `${event.agent}: ${outputsText(event.outputs)}`;
    case "ForkObservation":
      return event.outcomes.map((child) => `${child.agent} ${words(child.outcome)}`).join(", ");
    default:
      return event.content;
  }
}
