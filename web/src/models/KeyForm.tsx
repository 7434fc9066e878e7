/** Asks for a key or a token, which its server has to accept before it is used or kept. */

import { useState } from "react";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";

interface Props {
  label: string;
  about: string;
  /** Test the key and use it; throws an error that tells the user why it is not used. */
  take: (key: string, keep: boolean) => Promise<void>;
}

export function KeyForm({ label, about, take: use }: Props) {
  const [key, setKey] = useState("");
  const [keep, setKeep] = useState(false);
  const { busy, problem, run } = useAsync();
  const take = () =>
    run(async () => {
      if (!key.trim()) return;
      await use(key.trim(), keep);
    });
  return (
    <section className="model-key" aria-label={label}>
      <div className="row">
        <input
          className="grow"
          type="password"
          autoComplete="off"
          aria-label={label}
          placeholder={label}
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
