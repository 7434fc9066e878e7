/** Asks for a provider's key, which the provider has to accept before it is used or kept. */

import { useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";

export function KeyForm({ provider, about, onTaken }: { provider: string; about: string; onTaken: () => void }) {
  const [key, setKey] = useState("");
  const [keep, setKeep] = useState(false);
  const { busy, problem, run } = useAsync();
  const take = () =>
    run(async () => {
      if (!key.trim()) return;
      await api.setKey(provider, key.trim(), keep);
      onTaken();
    });
  return (
    <section className="model-key" aria-label={`Key for ${provider}`}>
      <div className="row">
        <input
          className="grow"
          type="password"
          autoComplete="off"
          aria-label={`Key for ${provider}`}
          placeholder={`Key for ${provider}`}
          value={key}
          onChange={(event) => setKey(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault(); // it would submit the form around this one
            take();
          }}
        />
        <Button disabled={busy || !key.trim()} onClick={take}>
          {busy ? "Testing …" : "Test and use"}
        </Button>
      </div>
      <KeepKey keep={keep} onChange={setKeep} />
      <p className="faint">{about}</p>
      <Problem text={problem} />
    </section>
  );
}

export function KeepKey({ keep, onChange }: { keep: boolean; onChange: (keep: boolean) => void }) {
  return (
    <label className="model-keep">
      <input type="checkbox" checked={keep} onChange={(event) => onChange(event.target.checked)} />
      <span>Keep it in a file that only you can read; else the server forgets it when it stops</span>
    </label>
  );
}
