import { Button } from "../../components/Button";
import { Problem } from "../../components/Problem";
import { useAsync } from "../../components/useAsync";
import { type SessionStore, useSessionPart } from "../../store";

/** Loads earlier events; nothing once all are loaded. `noun` names the pane's items. */
export function LoadEarlier({ session, noun }: { session: SessionStore; noun: string }) {
  const first = useSessionPart(session, (now) => now.first);
  const { busy, problem, run } = useAsync();
  if (first <= 1) return null;
  return (
    <div className="pane-bar">
      <Button disabled={busy} onClick={() => run(() => session.older())}>
        {busy ? "Loading…" : `Load earlier ${noun}`}
      </Button>
      <span className="faint">shown from event {first} on</span>
      <Problem text={problem} />
    </div>
  );
}
