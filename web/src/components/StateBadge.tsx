import type { AgentState } from "../events";
import { stateName } from "../wording/state";

const KINDS: Record<AgentState, string> = {
  loading: "running",
  running: "running",
  awaiting_user_input: "awaiting",
  awaiting_user_confirmation: "awaiting",
  paused: "awaiting",
  stopped: "",
  finished: "finished",
  rejected: "failed",
  error: "failed",
};

export function StateBadge({ state }: { state: AgentState }) {
  return <span className={`state ${KINDS[state]}`}>{stateName(state)}</span>;
}
