/** Tells which hosts the sandbox could not reach, and allows them: once, for the session, or always for the folder. */

import { useState } from "react";
import { Button } from "../components/Button";
import type { RefusedHost } from "../../generated/types";
import { type SessionStore, useSessionPart } from "../store";
import { exact } from "../wording/text";
import { AllowProblem, useAllowHosts } from "./AllowProblem";

export function RefusedHosts({ store }: { store: SessionStore }) {
  const refused = useSessionPart(store, (now) => now.info.refused);
  const [dismissed, setDismissed] = useState<readonly string[]>([]);
  const shown = refused.filter(({ pattern }) => !dismissed.includes(pattern));
  return shown.map((host) => (
    <Refused
      key={host.pattern}
      store={store}
      host={host}
      onDismiss={() => setDismissed((before) => [...before, host.pattern])}
    />
  ));
}

interface Props {
  store: SessionStore;
  host: RefusedHost;
  onDismiss: () => void;
}

function Refused({ store, host: { pattern, host, port }, onDismiss }: Props) {
  const allowing = useAllowHosts(store, async ({ state }) => {
    // An agent that has stopped for want of the host does not notice.
    if (state !== "running" && state !== "awaiting_user_confirmation")
      await store.api.send(`The sandbox may reach ${pattern} now. Go on.`);
  });
  const { busy } = allowing;
  const allow = (scope: "once" | "session" | "project") => allowing.allow(pattern, scope);
  return (
    <section className="steering-bar" aria-label={`Refused host ${host}`}>
      <p className="grow">
        The sandbox may not reach <code>{exact(port === 80 || port === 443 ? host : `${host}:${port}`)}</code>.
      </p>
      <span className="row">
        <Button kind="primary" disabled={busy} onClick={() => allow("once")}>
          Allow once
        </Button>
        <Button disabled={busy} onClick={() => allow("session")}>
          For this session
        </Button>
        <Button
          disabled={busy}
          title="Also for new sessions on this folder, until you take it back"
          onClick={() => allow("project")}
        >
          Always
        </Button>
        <Button kind="quiet" label="Do not allow it" onClick={onDismiss}>
          ✕
        </Button>
      </span>
      <AllowProblem {...allowing} />
    </section>
  );
}
