/** The names of a session's states. */

import type { SessionRow } from "../../generated/types";
import type { AgentState } from "../events";

const NAMES: Record<AgentState, string> = {
  loading: "starting",
  running: "running",
  awaiting_user_input: "waits for your answer",
  awaiting_user_confirmation: "needs your approval",
  paused: "paused",
  stopped: "stopped",
  finished: "finished",
  rejected: "rejected",
  error: "failed",
};

export function stateName(state: AgentState): string {
  return NAMES[state];
}

/** The name of a session's state; a session whose process has ended is not running. */
export function sessionState({ state, interrupted }: Pick<SessionRow, "state" | "interrupted">): string {
  if (!interrupted) return NAMES[state];
  return state === "loading" ? "no task yet" : "interrupted";
}
