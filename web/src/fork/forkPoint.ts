/** Where a fork begins: at the end of a step, as half a step leaves actions without results. */

import type { EventRecord } from "../events";

/** Events per request; a step rarely has more. */
const PAGE = 100;

/** Load the events after an id, ascending. */
type Load = (query: { after: number; limit: number }) => Promise<{ events: EventRecord[] }>;

/** Return the last event of the step that `event` is in. Throws the errors of `load`. */
export async function forkPoint(load: Load, event: number): Promise<number> {
  for (let last = event; ;) {
    const { events } = await load({ after: last, limit: PAGE });
    for (const next of events) {
      if (beginsSomething(next)) return last;
      last = next.id;
    }
    if (events.length < PAGE) return last;
  }
}

/** Events that belong to nothing before them. */
function beginsSomething(event: EventRecord): boolean {
  switch (event.type) {
    case "StepStarted":
    case "SessionStarted":
    case "ChangeAgentStateAction":
      return true;
    case "MessageAction":
      return event.source === "user";
    case "AgentStateChangedObservation":
      return ["paused", "stopped", "error"].includes(event.agent_state);
    default:
      return false;
  }
}
