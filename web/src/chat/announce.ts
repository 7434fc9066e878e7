/** What a screen reader is told when events come: what is said to the user, and what needs them. */

import type { EventRecord } from "../events";
import { outputsText, plain } from "./text";

const LONGEST = 300;

/** Return what to say of new events of the session itself, "" if there is nothing worth an interruption. */
export function announcement(events: readonly EventRecord[]): string {
  const found = events.map(about).filter((text) => text !== "");
  return found.slice(-3).join(" ");
}

function about(event: EventRecord): string {
  if (event.subtask !== 0) return "";
  switch (event.type) {
    case "MessageAction":
      return event.source === "agent" ? `The agent says: ${short(event.content)}` : "";
    case "AgentFinishAction":
      return `Finished. ${short(outputsText(event.outputs))}`;
    case "AgentRejectAction":
      return `The agent declined the task. ${short(outputsText(event.outputs))}`;
    case "ErrorObservation":
      return `Error: ${short(event.content)}`;
    case "AgentStateChangedObservation":
      if (event.agent_state === "running") return "";
      if (event.agent_state === "awaiting_user_confirmation")
        return `The agent asks you first: ${short(event.content)}`;
      return `${event.agent_state}: ${short(event.content)}`;
    default:
      return "";
  }
}

function short(text: string): string {
  const clear = plain(text).trim();
  return clear.length > LONGEST ? `${clear.slice(0, LONGEST)} …` : clear;
}
