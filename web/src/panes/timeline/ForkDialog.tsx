import { type FormEvent, useState } from "react";

import { said } from "../../api";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { go, sessionPath } from "../../router";
import { type SessionStore, useSessionPart } from "../../store";
import type { NewFork } from "../../../generated/types";
import { Choices } from "../common/Choices";
import { Trouble } from "../common/Notice";
import { useLoaded } from "../common/useLoaded";

const RESTORE: Record<NonNullable<NewFork["restore"]>, string> = {
  both: "Files and conversation",
  files: "Files only",
  conversation: "Conversation only",
};

/** Asks how a new session is to go on from an event, and makes it. */
export function ForkDialog({ session, at, onClose }: { session: SessionStore; at: number; onClose: () => void }) {
  const now = useSessionPart(session, (snapshot) => snapshot.info.model);
  const { value: known } = useLoaded(() => session.api.models(), [session]);
  const [message, setMessage] = useState("");
  const [model, setModel] = useState("");
  const [baseUrl, setBaseUrl] = useState("");
  const [restore, setRestore] = useState<NonNullable<NewFork["restore"]>>("both");
  const [compare, setCompare] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const submitted = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      const how: NewFork = { at, restore };
      if (message.trim()) how.message = message;
      if (model.trim()) how.model = model.trim();
      if (model.trim() && baseUrl.trim()) how.base_url = baseUrl.trim();
      const fork = await session.api.fork(how);
      onClose();
      go(sessionPath(fork.id, compare ? "compare" : ""));
    } catch (problem) {
      setError(said(problem));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Fork at event ${at}`} onClose={onClose}>
      <form className="fork" onSubmit={(event) => void submitted(event)}>
        <p className="faint">A new session goes on from there; this one stays as it is.</p>
        <label>
          Another message
          <textarea
            rows={4}
            value={message}
            placeholder="What the agent is to do from there. Left empty, it waits for you."
            onChange={(event) => {
              setMessage(event.target.value);
            }}
          />
        </label>
        <label>
          Model
          <input
            list="fork-models"
            value={model}
            placeholder={now}
            onChange={(event) => {
              setModel(event.target.value);
            }}
          />
        </label>
        {model.trim() && (
          <label>
            Base URL
            <input
              type="url"
              value={baseUrl}
              placeholder="Only for a server of your own"
              onChange={(event) => {
                setBaseUrl(event.target.value);
              }}
            />
          </label>
        )}
        <datalist id="fork-models">
          {known?.models
            .filter((one) => one.ready)
            .map((one) => (
              <option key={one.name} value={one.name} />
            ))}
        </datalist>
        <Choices name="As they were then" choices={RESTORE} chosen={restore} choose={setRestore} />
        <label className="pane-check">
          <input
            type="checkbox"
            checked={compare}
            onChange={(event) => {
              setCompare(event.target.checked);
            }}
          />
          Show both side by side
        </label>
        <Trouble text={error} />
        <footer className="pane-bar">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={busy}>
            {busy ? "Forking…" : "Fork"}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
