import { useEffect, useRef, useState, type ReactNode } from "react";
import { Button } from "../components/Button";
import { Link } from "../components/Link";
import { StateBadge, stateName } from "../components/StateBadge";
import { ThemeSwitch } from "../components/ThemeSwitch";
import type { AgentState } from "../events";
import { useShortcuts } from "../keyboard";
import { go, sessionPath } from "../router";
import { ago, clock } from "../time";
import type { SessionRow } from "../../generated/types";
import { DeleteSession, RenameSession } from "./changes";
import { useSessionList } from "./list";
import { NewSessionDialog } from "./NewSession";
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

/** All sessions: to find, to begin, to rename and to delete them. */
export function Sessions() {
  const [q, setQ] = useState("");
  const [state, setState] = useState("");
  const [beginning, setBeginning] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const list = useSessionList(q, state);
  const { rows } = list;
  const none = rows?.length === 0 && !q && !state;
  useEffect(() => {
    if (none && !isWelcomed()) go("/welcome", true);
  }, [none]);
  useShortcuts([
    { keys: "n", does: "New session", run: () => setBeginning(true) },
    { keys: "/", does: "Search", run: () => search.current?.focus() },
  ]);
  return (
    <main className="page">
      <header>
        <h1>Sessions</h1>
        <Link className="button quiet" to="/welcome">
          Model
        </Link>
        <ThemeSwitch />
        <Button kind="primary" onClick={() => setBeginning(true)}>
          New session
        </Button>
      </header>
      <div className="row" role="search">
        <input
          ref={search}
          className="grow"
          type="search"
          aria-label="Search sessions"
          placeholder="Search title, folder, model, agent or id"
          value={q}
          onChange={(event) => setQ(event.target.value)}
        />
        <select aria-label="State" value={state} onChange={(event) => setState(event.target.value)}>
          <option value="">Any state</option>
          {STATES.map((one) => (
            <option key={one} value={one}>
              {stateName(one)}
            </option>
          ))}
        </select>
      </div>
      <p role="status" className={list.problem ? "error-text" : "hidden"}>
        {list.problem || (rows ? `${rows.length} sessions` : "")}
      </p>
      {rows !== null && rows.length > 0 && <List rows={rows} />}
      {rows?.length === 0 && <Nothing none={none} onBegin={() => setBeginning(true)} />}
      {list.more && <Button onClick={list.loadMore}>Show more</Button>}
      {beginning && <NewSessionDialog known={rows ?? []} onClose={() => setBeginning(false)} />}
    </main>
  );
}

function Nothing({ none, onBegin }: { none: boolean; onBegin: () => void }): ReactNode {
  if (!none) return <p className="faint">No session is like that.</p>;
  return (
    <div className="middle">
      <p>There are no sessions yet.</p>
      <div>
        <Button onClick={onBegin}>Begin the first one</Button>
      </div>
    </div>
  );
}

function List({ rows }: { rows: SessionRow[] }) {
  const [renamed, setRenamed] = useState<SessionRow | null>(null);
  const [deleted, setDeleted] = useState<SessionRow | null>(null);
  return (
    <ul className="sessions">
      {rows.map((row) => (
        <li key={row.id}>
          <div className="grow">
            <Link to={sessionPath(row.id)} className="title cut">
              {row.title}
            </Link>
            <div className="faint cut">
              {row.model} · {row.workspace}
              {row.parent !== null && " · fork"}
            </div>
          </div>
          <div className="side">
            <StateBadge state={row.state} />
            <time className="faint" dateTime={row.updated} title={clock(row.updated)}>
              {ago(row.updated)}
            </time>
          </div>
          <Button kind="quiet" label={`Rename ${row.title}`} onClick={() => setRenamed(row)}>
            ✎
          </Button>
          <Button kind="quiet" label={`Delete ${row.title}`} onClick={() => setDeleted(row)}>
            ✕
          </Button>
        </li>
      ))}
      {renamed && <RenameSession row={renamed} onClose={() => setRenamed(null)} />}
      {deleted && <DeleteSession row={deleted} onClose={() => setDeleted(null)} />}
    </ul>
  );
}
