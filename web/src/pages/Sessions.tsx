import { useEffect, useState, type ReactNode } from "react";
import { Button } from "../components/Button";
import { Link } from "../components/Link";
import { SearchField } from "../components/SearchField";
import { ThemeSwitch } from "../components/ThemeSwitch";
import type { AgentState } from "../events";
import { useShortcuts } from "../keyboard";
import { go, listPath } from "../router";
import { useListAttention, useTab } from "../steering/attention";
import { NotificationSwitch } from "../steering/notifications";
import { plural } from "../wording/format";
import { stateName } from "../wording/state";
import { useSessionList } from "./list";
import { NewSessionDialog } from "./NewSession";
import { SessionGroups } from "./SessionGroups";
import { isWelcomed } from "./welcomed";

const STATES: AgentState[] = [
  "running",
  "awaiting_user_confirmation",
  "awaiting_user_input",
  "paused",
  "finished",
  "stopped",
  "rejected",
  "error",
];

/** The list of sessions: search, start, rename and delete them. */
export function Sessions({ q, state: wanted, archived }: { q: string; state: string; archived: boolean }) {
  const state = STATES.find((name) => name === wanted) ?? "";
  const setQ = (text: string) => go(listPath(text, state, archived), true);
  const setState = (name: string) => go(listPath(q, name, archived), true);
  const setArchived = (on: boolean) => go(listPath(q, state, on), true);
  const [starting, setStarting] = useState(false);
  const list = useSessionList(q, state, archived, useListAttention());
  const { rows, current, waiting } = list;
  const empty = current && rows?.length === 0 && !q && !state && !archived;
  useEffect(() => {
    if (empty && !isWelcomed()) go("/welcome", true);
  }, [empty]);
  useTab(waiting ? `(${waiting}) Sessions` : "Sessions", waiting > 0);
  useShortcuts([{ keys: "n", label: "New session", run: () => setStarting(true) }]);
  return (
    <main className="page">
      <header>
        <h1>Sessions</h1>
        <Link className="button quiet" to="/welcome">
          Model
        </Link>
        <NotificationSwitch when="a session needs me or is done" />
        <ThemeSwitch />
        <Button kind="primary" onClick={() => setStarting(true)}>
          New session
        </Button>
      </header>
      <div className="row" role="search">
        <SearchField
          label="Search sessions"
          placeholder="Search titles, folders, messages, commands, results"
          value={q}
          onChange={setQ}
        />
        <select aria-label="State" value={state} onChange={(event) => setState(event.target.value)}>
          <option value="">Any state</option>
          {STATES.map((name) => (
            <option key={name} value={name}>
              {stateName(name)}
            </option>
          ))}
        </select>
        <label className="check">
          <input type="checkbox" checked={archived} onChange={(event) => setArchived(event.target.checked)} />
          Archived
        </label>
      </div>
      <p role="status" className={list.problem ? "error-text" : "hidden"}>
        {list.problem || (rows ? `${list.more ? "The first " : ""}${plural(rows.length, "session")}` : "")}
      </p>
      {rows !== null && rows.length > 0 && <SessionGroups rows={rows} />}
      {rows?.length === 0 && <NoSessions filtered={!empty} onStart={() => setStarting(true)} />}
      {list.more && <Button onClick={list.loadMore}>Show more</Button>}
      {starting && <NewSessionDialog known={rows ?? []} onClose={() => setStarting(false)} />}
    </main>
  );
}

function NoSessions({ filtered, onStart }: { filtered: boolean; onStart: () => void }): ReactNode {
  if (filtered) return <p className="faint">No session matches.</p>;
  return (
    <div className="middle">
      <p>No sessions yet.</p>
      <div>
        <Button onClick={onStart}>Start the first one</Button>
      </div>
    </div>
  );
}
