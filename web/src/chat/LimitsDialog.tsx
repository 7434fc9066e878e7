/** What the session may spend, to be changed. */

import { type FormEvent, useState } from "react";
import { said } from "../api";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import type { SessionStore } from "../store";
import { LIMITS, type LimitName, limitsFrom, spent } from "./limits";

export function LimitsDialog({ store, onClose }: { store: SessionStore; onClose: () => void }) {
  const { info, state } = store.snapshot();
  const used = spent(info);
  const [fields, setFields] = useState<Record<LimitName, string>>(() => {
    const text = (name: LimitName) => String(info.limits[name] ?? "");
    return { iterations: text("iterations"), cost: text("cost"), tokens: text("tokens"), time: text("time") };
  });
  const [problem, setProblem] = useState("");

  const save = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await store.api.change({ limits: limitsFrom(fields, used) });
      if (state === "paused") await store.api.resume();
      onClose();
    } catch (error) {
      setProblem(said(error));
    }
  };
  return (
    <Dialog title="Limits of the session" onClose={onClose}>
      <form className="chat-form" onSubmit={(event) => void save(event)}>
        {LIMITS.map(({ name, label, unit }) => (
          <label key={name}>
            {label} ({used[name].toLocaleString()} {unit} spent)
            <input
              value={fields[name]}
              inputMode="decimal"
              placeholder="no limit"
              onChange={(event) => setFields({ ...fields, [name]: event.target.value })}
            />
          </label>
        ))}
        {problem && <p role="alert">{problem}</p>}
        <Button type="submit" kind="primary">
          {state === "paused" ? "Save and go on" : "Save"}
        </Button>
      </form>
    </Dialog>
  );
}
