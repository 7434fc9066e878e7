import type { AgentState } from "../events";

const NAMES: Record<AgentState, [string, string]> = {
  loading: ["starting", "running"],
  running: ["running", "running"],
  awaiting_user_input: ["waits for your answer", "awaiting"],
  awaiting_user_confirmation: ["needs your approval", "awaiting"],
  paused: ["paused", "awaiting"],
  stopped: ["stopped", ""],
  finished: ["finished", "finished"],
  rejected: ["rejected", "failed"],
  error: ["failed", "failed"],
};

export function stateName(state: AgentState): string {
  return NAMES[state][0];
}

export function StateBadge({ state }: { state: AgentState }) {
  const [name, kind] = NAMES[state];
  return <span className={`state ${kind}`}>{name}</span>;
}
