/** Where the session stands, and what can be done about it. */

import { useEffect, useState } from "react";
import { said } from "../api";
import { Button } from "../components/Button";
import { type SessionStore, useSession, useSessionPart } from "../store";
import { LimitsDialog } from "./LimitsDialog";
import { ModelDialog } from "./ModelDialog";
import { type Deed, doing, standing } from "./banner";
import { exact } from "./text";

const NAMES: Record<Deed, string> = {
  interrupt: "Interrupt",
  resume: "Go on",
  rewind: "Forget the loop",
  limits: "Change the limits",
  model: "Change the model",
};

export function Banner({ store }: { store: SessionStore }) {
  const now = useSession(store);
  const [dialog, setDialog] = useState<"model" | "limits" | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const { tone, title, detail, deeds } = standing({ ...now, outputs: now.info.outputs });

  const run = async (call: () => Promise<unknown>) => {
    setBusy(true);
    setProblem("");
    try {
      await call();
    } catch (error) {
      setProblem(said(error));
    }
    setBusy(false);
  };
  const act = (deed: Deed) => {
    if (deed === "model" || deed === "limits") setDialog(deed);
    else void run(() => store.api[deed]());
  };
  const elsewhere = now.info.run_by !== null && !now.info.run_by.here;
  const ended = ["finished", "rejected", "stopped"].includes(now.state);

  return (
    <section className={`chat-banner ${tone}`} aria-label="State of the session">
      <span className="chat-state">
        {tone === "busy" && <span className="chat-pulse" aria-hidden="true" />}
        {title}
      </span>
      <span className="chat-detail">
        {tone === "busy" ? <Busy store={store} /> : exact(detail)}
        {elsewhere && now.info.run_by && ` Run by process ${now.info.run_by.pid} on ${exact(now.info.run_by.host)}.`}
      </span>
      {problem && <span role="alert">{exact(problem)}</span>}
      <span className="chat-deeds">
        {deeds.map((deed, place) => (
          <Button key={deed} kind={place === 0 ? "primary" : "plain"} disabled={busy} onClick={() => act(deed)}>
            {NAMES[deed]}
          </Button>
        ))}
        {!deeds.includes("model") && <Button onClick={() => setDialog("model")}>Model</Button>}
        {!ended && (
          <Button disabled={busy} onClick={() => void run(() => store.api.stop())}>
            Stop
          </Button>
        )}
      </span>
      {dialog === "model" && <ModelDialog store={store} onClose={() => setDialog(null)} />}
      {dialog === "limits" && <LimitsDialog store={store} onClose={() => setDialog(null)} />}
    </section>
  );
}

/** What it does at this moment, and for how long already. */
function Busy({ store }: { store: SessionStore }) {
  const head = useSessionPart(store, (now) => now.head);
  const live = useSessionPart(store, (now) => now.live);
  const info = useSessionPart(store, (now) => now.info);
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    setSeconds(0);
    const began = Date.now();
    const timer = setInterval(() => setSeconds(Math.round((Date.now() - began) / 1000)), 1000);
    return () => clearInterval(timer);
  }, [head]);
  return <>{exact(doing(live, info, seconds))}</>;
}
