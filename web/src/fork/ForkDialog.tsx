import { useState } from "react";

import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { RadioGroup } from "../components/RadioGroup";
import { useAsync } from "../components/useAsync";
import { useLoaded } from "../components/useLoaded";
import { ModelField } from "../models/ModelField";
import { go, sessionPath } from "../router";
import { type SessionStore, useSessionPart } from "../store";
import type { NewFork } from "../../generated/types";
import { forkPoint } from "./forkPoint";

type Restore = NonNullable<NewFork["restore"]>;
const RESTORE: Record<Restore, string> = {
  both: "Files and conversation",
  files: "Files only",
  conversation: "Conversation only",
};

/** Forks the session at the end of the step that an event is in. */
export function ForkDialog({ session, event, onClose }: { session: SessionStore; event: number; onClose: () => void }) {
  const point = useLoaded(() => forkPoint(session.api.events, event), [session, event]);
  const at = point.value;
  const current = useSessionPart(session, ({ info }) => info.model);
  const currentUrl = useSessionPart(session, ({ info }) => info.base_url) ?? "";
  const [message, setMessage] = useState("");
  const [model, setModel] = useState("");
  const [baseUrl, setBaseUrl] = useState(currentUrl);
  const [restore, setRestore] = useState<Restore>("both");
  const [compare, setCompare] = useState(false);
  const { busy, problem, run } = useAsync();
  const create = () =>
    run(async () => {
      if (at === null) return;
      const fork: NewFork = { at, restore };
      if (message.trim()) fork.message = message;
      if (model.trim()) fork.model = model.trim();
      if (model.trim() && baseUrl.trim()) fork.base_url = baseUrl.trim();
      const { id } = await session.api.fork(fork);
      onClose();
      go(sessionPath(id, compare ? "compare" : ""));
    });
  return (
    <Dialog title={at === null ? "Fork" : `Fork at event ${at}`} onClose={onClose} onSubmit={create}>
      <p className="faint">
        A new session continues from {at === event || at === null ? "this event" : `the end of event ${event}'s step`};
        the current one is unchanged.
      </p>
      <Field label="Message to the agent">
        <textarea
          rows={4}
          value={message}
          placeholder="Without a message, the fork waits for you."
          onChange={(event) => setMessage(event.target.value)}
        />
      </Field>
      <ModelField
        value={model}
        baseUrl={model.trim() ? baseUrl : currentUrl}
        placeholder={current}
        onChange={setModel}
      />
      {model.trim() && (
        <Field label="Base URL">
          <input
            type="url"
            value={baseUrl}
            placeholder="Only for your own server"
            onChange={(event) => setBaseUrl(event.target.value)}
          />
        </Field>
      )}
      <RadioGroup label="Restore" options={RESTORE} value={restore} onChange={setRestore} />
      <label className="check">
        <input type="checkbox" checked={compare} onChange={(event) => setCompare(event.target.checked)} />
        Show both side by side
      </label>
      <Problem text={problem || point.problem} />
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={busy || at === null}>
          {busy ? "Forking…" : "Fork"}
        </Button>
      </footer>
    </Dialog>
  );
}
