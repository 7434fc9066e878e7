/** What the agent may do: when it asks, plan mode, and the hosts and rules that the user has allowed. */

import { useEffect, useState } from "react";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useLoaded } from "../components/useLoaded";
import type { Confirmation } from "../events";
import type { Permission, PermissionList } from "../../generated/types";
import { type SessionStore, useSessionPart } from "../store";
import { exact } from "../wording/text";
import { AllowProblem, useAllowHosts } from "./AllowProblem";
import { CONFIRMATIONS } from "./confirmations";

export function PermissionsDialog({ store, onClose }: { store: SessionStore; onClose: () => void }) {
  const { confirmation, plan_mode, rules, network } = useSessionPart(store, (now) => now.info);
  const loaded = useLoaded(() => store.api.permissions.list(), [store, rules.join("\n"), network.join("\n")]);
  const [changed, setChanged] = useState<PermissionList | null>(null);
  useEffect(() => setChanged(null), [loaded.value]);
  const [host, setHost] = useState("");
  const { busy, problem, run } = useAsync();
  const list = changed ?? loaded.value;
  const change = (kind: "hosts" | "rules", text: string, action: "keep" | "revoke") =>
    run(async () => setChanged(await store.api.permissions[action]({ [kind]: [text] })));
  const allowing = useAllowHosts(store, async () => {
    setHost("");
    setChanged(await store.api.permissions.list());
  });
  const section = (kind: "hosts" | "rules", title: string, none: string) => (
    <section aria-label={title}>
      <h3>{title}</h3>
      {list?.[kind].length === 0 && <p className="faint">{none}</p>}
      <ul className="list steering-permissions">
        {list?.[kind].map((permission) => (
          <Row
            key={permission.text}
            permission={permission}
            busy={busy}
            onKeep={() => change(kind, permission.text, "keep")}
            onRevoke={() => change(kind, permission.text, "revoke")}
          />
        ))}
      </ul>
    </section>
  );
  return (
    <Dialog title="What the agent may do" onClose={onClose} wide>
      <div className="stack">
        <Field label="Ask for approval" hint="From the next action on.">
          <select
            value={confirmation}
            disabled={busy}
            onChange={(event) =>
              run(() => store.api.changeSettings({ confirmation: event.target.value as Confirmation }))
            }
          >
            {CONFIRMATIONS.map(([value, about]) => (
              <option key={value} value={value}>
                {about}
              </option>
            ))}
          </select>
        </Field>
        <label className="steering-check">
          <input
            type="checkbox"
            checked={plan_mode}
            disabled={busy}
            onChange={(event) => run(() => store.api.changeSettings({ plan_mode: event.target.checked }))}
          />
          <span>Plan mode: the agent changes nothing until you accept its plan</span>
        </label>
        {section("hosts", "Hosts that the sandbox may reach", "None: the sandbox has no network.")}
        <form
          className="steering-host"
          onSubmit={(event) => {
            event.preventDefault();
            allowing.allow(host.trim(), "session");
          }}
        >
          <input
            className="grow"
            value={host}
            aria-label="Another host"
            placeholder="example.org, *.example.org, pypi, npm, debian"
            spellCheck={false}
            onChange={(event) => setHost(event.target.value)}
          />
          <Button type="submit" disabled={allowing.busy || !host.trim()}>
            Allow for this session
          </Button>
        </form>
        <AllowProblem {...allowing} />
        {section(
          "rules",
          "Rules: actions that run without a question",
          "None yet: your answers to questions add them.",
        )}
        <Problem text={problem || loaded.problem} />
      </div>
    </Dialog>
  );
}

interface RowProps {
  permission: Permission;
  busy: boolean;
  onKeep: () => void;
  onRevoke: () => void;
}

function Row({ permission: { text, in_force, kept }, busy, onKeep, onRevoke }: RowProps) {
  return (
    <li>
      <code className="grow">{exact(text)}</code>
      <span className="faint">{kept ? (in_force ? "always" : "new sessions only") : "this session"}</span>
      {!kept && (
        <Button
          disabled={busy}
          label={`Keep ${text} for this folder`}
          title="Also for new sessions on this folder"
          onClick={onKeep}
        >
          Keep for this folder
        </Button>
      )}
      <Button kind="danger" disabled={busy} label={`Take back ${text}`} onClick={onRevoke}>
        Take back
      </Button>
    </li>
  );
}
