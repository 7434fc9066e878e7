/** Changes the model of the session from its next step on. */

import { useRef, useState } from "react";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useLoaded } from "../components/useLoaded";
import type { SessionStore } from "../store";
import { modelStart } from "../wording/text";

export function ModelDialog({ store, onClose }: { store: SessionStore; onClose: () => void }) {
  const { info } = store.snapshot();
  const [model, setModel] = useState(info.model);
  const [baseUrl, setBaseUrl] = useState(info.base_url ?? "");
  const available = useLoaded(() => store.api.models(), [store]);
  const { busy, problem, run } = useAsync();
  const field = useRef<HTMLInputElement>(null);
  const choose = (name: string) => {
    setModel(modelStart(name));
    field.current?.focus();
  };
  const save = () =>
    run(async () => {
      await store.api.changeSettings({ model: model.trim(), base_url: baseUrl.trim() || null });
      onClose();
    });
  return (
    <Dialog title="Model of the session" onClose={onClose} onSubmit={save}>
      <Field label="Model">
        <input
          ref={field}
          value={model}
          required
          pattern=".*[^:]"
          title="The provider and the model, like anthropic:NAME"
          spellCheck={false}
          onChange={(event) => setModel(event.target.value)}
        />
      </Field>
      <fieldset className="chat-models">
        <legend>Available</legend>
        {available.value?.models.map(({ name, ready, about }) => (
          <button key={name} type="button" className="row-button" onClick={() => choose(name)}>
            <code>{name}</code> <span className={ready ? "" : "faint"}>{about}</span>
          </button>
        ))}
      </fieldset>
      <Field label="Base URL (for your own server)">
        <input
          value={baseUrl}
          type="url"
          placeholder="the provider's"
          onChange={(event) => setBaseUrl(event.target.value)}
        />
      </Field>
      <Problem text={problem || available.problem} />
      <Button type="submit" kind="primary" disabled={busy}>
        Use from the next step on
      </Button>
    </Dialog>
  );
}
