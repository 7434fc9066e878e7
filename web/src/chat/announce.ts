/** Announcements of new events to screen readers: messages, results, and questions to the user. */

import type { EventRecord } from "../events";
import { noticeOf } from "../wording/notices";
import { outputsText, plain } from "../wording/text";

const LONGEST = 300;

/** Return the announcement of new events; "" if none is worth an interruption. */
export function announcement(events: readonly EventRecord[]): string {
  return events.map(textOf).filter(Boolean).slice(-3).join(" ");
}

function textOf(event: EventRecord): string {
  if (event.subtask !== 0) return "";
  switch (event.type) {
    case "MessageAction":
      return event.source === "agent" ? `The agent says: ${short(event.content)}` : "";
    case "AgentFinishAction":
      return `Finished. ${short(outputsText(event.outputs))}`;
    case "AgentRejectAction":
      return `The agent rejected the task. ${short(outputsText(event.outputs))}`;
    case "ErrorObservation":
      return `Error: ${short(event.content)}`;
    case "AgentStateChangedObservation":
      return short(noticeOf(event)?.text ?? "");
    default:
      return "";
  }
}

function short(text: string): string {
  const clear = plain(text).trim();
  return clear.length > LONGEST ? `${clear.slice(0, LONGEST)} …` : clear;
}
