/** Changes the limits of the session. */

import { useState } from "react";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import type { SessionStore } from "../store";
import { capital } from "../wording/text";
import { LIMITS, type LimitName, limitsFrom, usedOf } from "./limits";

export function LimitsDialog({ store, onClose }: { store: SessionStore; onClose: () => void }) {
  const { info } = store.snapshot();
  const paused = info.state === "paused";
  const used = usedOf(info);
  const [fields, setFields] = useState<Record<LimitName, string>>(() => {
    const text = (name: LimitName) => String(info.limits[name] ?? "");
    return { iterations: text("iterations"), cost: text("cost"), tokens: text("tokens"), time: text("time") };
  });
  const { busy, problem, run } = useAsync();
  const save = () =>
    run(async () => {
      await store.api.changeSettings({ limits: limitsFrom(fields, used) });
      if (paused) await store.api.resume();
      onClose();
    });
  return (
    <Dialog title="Limits of the session" onClose={onClose} onSubmit={save}>
      {LIMITS.map(({ name, label, unit }) => (
        <Field
          key={name}
          label={`${label === capital(unit) ? label : `${label} in ${unit}`} (${used[name].toLocaleString("en")} used)`}
        >
          <input
            value={fields[name]}
            inputMode="decimal"
            placeholder="no limit"
            onChange={(event) => setFields({ ...fields, [name]: event.target.value })}
          />
        </Field>
      ))}
      <Problem text={problem} />
      <Button type="submit" kind="primary" disabled={busy}>
        {paused ? "Save and resume" : "Save"}
      </Button>
    </Dialog>
  );
}
