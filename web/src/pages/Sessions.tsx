import { useEffect, useRef, useState, type ReactNode } from "react";
import { Button } from "../components/Button";
import { Link } from "../components/Link";
import { StateBadge } from "../components/StateBadge";
import { ThemeSwitch } from "../components/ThemeSwitch";
import type { AgentState } from "../events";
import { useShortcuts } from "../keyboard";
import { go, sessionPath } from "../router";
import { age, plural } from "../wording/format";
import { stateName } from "../wording/state";
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

/** The list of sessions: search, start, rename and delete them. */
export function Sessions() {
  const [q, setQ] = useState("");
  const [state, setState] = useState<AgentState | "">("");
  const [starting, setStarting] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const list = useSessionList(q, state);
  const { rows } = list;
  const empty = rows?.length === 0 && !q && !state;
  useEffect(() => {
    if (empty && !isWelcomed()) go("/welcome", true);
  }, [empty]);
  useShortcuts([
    { keys: "n", label: "New session", run: () => setStarting(true) },
    { keys: "/", label: "Search", run: () => search.current?.focus() },
  ]);
  return (
    <main className="page">
      <header>
        <h1>Sessions</h1>
        <Link className="button quiet" to="/welcome">
          Model
        </Link>
        <ThemeSwitch />
        <Button kind="primary" onClick={() => setStarting(true)}>
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
        <select aria-label="State" value={state} onChange={(event) => setState(event.target.value as AgentState | "")}>
          <option value="">Any state</option>
          {STATES.map((name) => (
            <option key={name} value={name}>
              {stateName(name)}
            </option>
          ))}
        </select>
      </div>
      <p role="status" className={list.problem ? "error-text" : "hidden"}>
        {list.problem || (rows ? `${list.more ? "The newest " : ""}${plural(rows.length, "session")}` : "")}
      </p>
      {rows !== null && rows.length > 0 && <SessionRows rows={rows} />}
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

function SessionRows({ rows }: { rows: SessionRow[] }) {
  const [renamed, setRenamed] = useState<SessionRow | null>(null);
  const [deleted, setDeleted] = useState<SessionRow | null>(null);
  return (
    <ul className="list sessions">
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
            <time className="faint" dateTime={row.updated} title={new Date(row.updated).toLocaleString()}>
              {age(row.updated)}
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
