import type { SessionRow } from "../../generated/types";
import type { AgentState } from "../events";
import { sessionState } from "../wording/state";

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

export function StateBadge({ session }: { session: Pick<SessionRow, "state" | "interrupted"> }) {
  const kind = session.interrupted ? "awaiting" : KINDS[session.state];
  return <span className={`state ${kind}`}>{sessionState(session)}</span>;
}
