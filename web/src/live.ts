// Replies and output as they stream in; the log stores them only when they are complete.

import { isObservation, type EventRecord } from "./events";
import type { LiveOutput } from "./eventStream";

export interface Live {
  /** The reply being written; of several, the one written to last. */
  text: string;
  /** The replies by subtask; 0 is the session's own agent. */
  texts: ReadonlyMap<number, string>;
  /** The end of the output so far, by the id of the action. */
  output: ReadonlyMap<number, string>;
  /** The operation in progress, like "starting the sandbox". */
  status: string;
}

export const NOTHING: Live = { text: "", texts: new Map(), output: new Map(), status: "" };

/** Characters kept of one reply or output, from its end. */
export const LIVE_LIMIT = 64 * 1024;

export function withPiece(live: Live, piece: LiveOutput): Live {
  switch (piece.transient) {
    case "text": {
      const text = extended(live.texts.get(piece.subtask), piece.text);
      return { ...live, text, texts: new Map(live.texts).set(piece.subtask, text), status: "" };
    }
    case "output": {
      const text = extended(live.output.get(piece.action), piece.text);
      return { ...live, output: new Map(live.output).set(piece.action, text), status: "" };
    }
    case "status":
      return { ...live, status: piece.text };
  }
}

/** Drop the reply or output that is complete in an event. */
export function afterEvent(live: Live, event: EventRecord): Live {
  if (live === NOTHING) return live;
  if (event.type === "AgentStateChangedObservation" && event.subtask === 0 && event.agent_state !== "running")
    return NOTHING;
  let { text, texts, output } = live;
  if ((event.type === "CompletionEvent" || event.type === "StepStarted") && texts.has(event.subtask)) {
    texts = without(texts, event.subtask);
    text = [...texts.values()].at(-1) ?? "";
  }
  if (isObservation(event) && event.cause !== null && output.has(event.cause)) output = without(output, event.cause);
  return { text, texts, output, status: "" };
}

function extended(before: string | undefined, piece: string): string {
  return ((before ?? "") + piece).slice(-LIVE_LIMIT);
}

function without(map: ReadonlyMap<number, string>, key: number): ReadonlyMap<number, string> {
  const rest = new Map(map);
  rest.delete(key);
  return rest;
}
