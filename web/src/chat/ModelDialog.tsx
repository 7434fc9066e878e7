/** Another model for the session, from its next step on. */

import { type FormEvent, useEffect, useState } from "react";
import { said } from "../api";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import type { SessionStore } from "../store";
import type { ModelInfo } from "../../generated/types";

export function ModelDialog({ store, onClose }: { store: SessionStore; onClose: () => void }) {
  const { info } = store.snapshot();
  const [model, setModel] = useState(info.model);
  const [baseUrl, setBaseUrl] = useState(info.base_url ?? "");
  const [offered, setOffered] = useState<ModelInfo[]>([]);
  const [problem, setProblem] = useState("");

  useEffect(() => {
    store.api.models().then(
      (found) => setOffered(found.models),
      (error: unknown) => setProblem(said(error)),
    );
  }, [store]);

  const save = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await store.api.setModel(model.trim(), baseUrl.trim() || undefined);
      onClose();
    } catch (error) {
      setProblem(said(error));
    }
  };
  return (
    <Dialog title="Model of the session" onClose={onClose}>
      <form className="chat-form" onSubmit={(event) => void save(event)}>
        <label>
          Model
          <input value={model} required onChange={(event) => setModel(event.target.value)} />
        </label>
        <fieldset>
          <legend>Offered</legend>
          {offered.map(({ name, ready, about }) => (
            <button key={name} type="button" className="chat-offer" onClick={() => setModel(name)}>
              <code>{name}</code> <span className={ready ? "" : "chat-quiet"}>{about}</span>
            </button>
          ))}
        </fieldset>
        <label>
          Base URL (for a server of your own)
          <input
            value={baseUrl}
            type="url"
            placeholder="the provider's"
            onChange={(event) => setBaseUrl(event.target.value)}
          />
        </label>
        {problem && <p role="alert">{problem}</p>}
        <Button type="submit" kind="primary">
          Use it from the next step on
        </Button>
      </form>
    </Dialog>
  );
}
