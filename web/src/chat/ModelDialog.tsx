/** Changes the model of the session from its next step on. */

import { useState } from "react";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { ModelField } from "../models/ModelField";
import type { SessionStore } from "../store";

export function ModelDialog({ store, onClose }: { store: SessionStore; onClose: () => void }) {
  const { info } = store.snapshot();
  const [model, setModel] = useState(info.model);
  const [baseUrl, setBaseUrl] = useState(info.base_url ?? "");
  const { busy, problem, run } = useAsync();
  const save = () =>
    run(async () => {
      await store.api.changeSettings({ model: model.trim(), base_url: baseUrl.trim() || null });
      onClose();
    });
  return (
    <Dialog title="Model of the session" onClose={onClose} onSubmit={save}>
      <ModelField value={model} baseUrl={baseUrl} required onChange={setModel} />
      <Field label="Base URL (for your own server)">
        <input
          value={baseUrl}
          type="url"
          placeholder="the provider's"
          onChange={(event) => setBaseUrl(event.target.value)}
        />
      </Field>
      <Problem text={problem} />
      <Button type="submit" kind="primary" disabled={busy}>
        Use from the next step on
      </Button>
    </Dialog>
  );
}
