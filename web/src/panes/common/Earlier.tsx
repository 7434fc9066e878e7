import { useState } from "react";

import { said } from "../../api";
import { Button } from "../../components/Button";
import { type SessionStore, useSessionPart } from "../../store";
import { Trouble } from "./Notice";

/** Loads what came before the events that are here; nothing when all are. */
export function Earlier({ session, what }: { session: SessionStore; what: string }) {
  const first = useSessionPart(session, (now) => now.first);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  if (first <= 1) return null;
  const load = async () => {
    setBusy(true);
    setError("");
    try {
      await session.older();
    } catch (problem) {
      setError(said(problem));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="pane-earlier">
      <Button disabled={busy} onClick={() => void load()}>
        {busy ? "Loading…" : `Load earlier ${what}`}
      </Button>
      <span className="faint">shown from event {first} on</span>
      <Trouble text={error} />
    </div>
  );
}
