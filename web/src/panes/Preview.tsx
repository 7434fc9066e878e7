import { useEffect, useRef, useState } from "react";

import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { RadioGroup } from "../components/RadioGroup";
import { useLoaded } from "../components/useLoaded";
import type { SessionStore } from "../store";
import { Empty } from "./common/Empty";

/** Milliseconds between two looks for servers. */
const BETWEEN_LOOKS = 2000;

/** A server that a program in the sandbox runs, shown on an origin of its own, which may reach nothing else. */
export default function PreviewPane({ session }: { session: SessionStore }) {
  const [looks, setLooks] = useState(0);
  const [loads, setLoads] = useState(0);
  const [wanted, setWanted] = useState<number | null>(null);
  useEffect(() => {
    const timer = setInterval(() => setLooks((before) => before + 1), BETWEEN_LOOKS);
    return () => clearInterval(timer);
  }, []);
  const ports = useLoaded(() => session.api.ports(), [session, looks]);
  const found = ports.value ?? [];
  // The page that is looked at stays when a server on a lower port starts.
  const first = useRef<number | null>(null);
  first.current ??= found[0] ?? null;
  const port = wanted ?? found.find((one) => one === first.current) ?? found[0] ?? null;
  const listens = port !== null && found.includes(port);
  const preview = useLoaded(
    async () => (listens ? { port, ...(await session.api.preview(port)) } : null),
    [session, port, listens, loads],
  );
  const gone = ports.value && port !== null && !listens ? `No server listens on port ${port} any more.` : "";
  const choices = found.includes(port ?? 0) || port === null ? found : [...found, port];
  return (
    <div className="pane-column" aria-busy={preview.loading}>
      {port !== null && (
        <div className="pane-bar">
          <RadioGroup
            label="Port"
            options={Object.fromEntries(choices.map((choice) => [nameOf(choice), `Port ${choice}`]))}
            value={nameOf(port)}
            onChange={(name) => setWanted(Number(name.slice(1)))}
          />
          <Button onClick={() => setLoads(loads + 1)}>Reload</Button>
        </div>
      )}
      <Problem text={ports.problem || preview.problem || gone} />
      {ports.value && port === null && (
        <Empty>
          No server listens in the sandbox. Start one, for example <code>python3 -m http.server 8000</code>, in a
          terminal, or let the agent start one.
        </Empty>
      )}
      {listens && preview.value?.port === port && (
        <iframe
          key={`${preview.value.url} ${loads}`}
          className="preview-frame"
          title={`Preview of port ${port}`}
          src={preview.value.url}
          sandbox="allow-scripts allow-same-origin allow-forms allow-modals allow-downloads"
          referrerPolicy="no-referrer"
        />
      )}
    </div>
  );
}

/** A name that does not look like a number: objects would sort those. */
function nameOf(port: number): string {
  return `p${port}`;
}
