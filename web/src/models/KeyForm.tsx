/** Asks for a key or a token, which its server has to accept before it is used or kept. */

import { useState } from "react";
import { isUntested } from "../api";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";

interface Props {
  label: string;
  about: string;
  /** Test the key and use it, or use it `untested`; throws an error that tells the user why it is not used. */
  take: (key: string, keep: boolean, untested: boolean) => Promise<void>;
}

export function KeyForm({ label, about, take: use }: Props) {
  const [key, setKey] = useState("");
  const [keep, setKeep] = useState(false);
  const [untested, setUntested] = useState(false);
  const { busy, problem, run } = useAsync();
  const take = (anyway: boolean) =>
    run(async () => {
      if (!key.trim()) return;
      try {
        await use(key.trim(), keep, anyway);
      } catch (error) {
        setUntested(isUntested(error));
        throw error;
      }
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
          onChange={(event) => {
            setKey(event.target.value);
            setUntested(false);
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault(); // it would submit the form around this one
            take(false);
          }}
        />
        <Button disabled={busy || !key.trim()} onClick={() => take(false)}>
          {busy ? "Testing …" : "Test and use"}
        </Button>
      </div>
      <KeepKey keep={keep} onChange={setKeep} />
      {about && <p className="faint">{about}</p>}
      <Problem text={problem} />
      {untested && (
        <div>
          <Button disabled={busy} onClick={() => take(true)}>
            Use it untested
          </Button>
        </div>
      )}
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
