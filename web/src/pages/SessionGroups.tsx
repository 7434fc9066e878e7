/** The rows of the list of sessions. */

import { useEffect, useReducer, useState } from "react";
import type { SessionRow } from "../../generated/types";
import { sessionApi } from "../api";
import { Button } from "../components/Button";
import { Link } from "../components/Link";
import { Problem } from "../components/Problem";
import { StateBadge } from "../components/StateBadge";
import { useAsync } from "../components/useAsync";
import { sessionPath } from "../router";
import { rowNeedsUser } from "../steering/attention";
import { age, dateAndTime, money, plural } from "../wording/format";
import { modelName } from "../wording/text";
import { DeleteSession, RenameSession } from "./changes";

const MINUTE = 60_000;

/** The sessions that need the user come first; the boxes select some to stop or delete together. */
export function SessionGroups({ rows }: { rows: SessionRow[] }) {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  // The sessions' ages grow while nothing else changes.
  useEffect(() => {
    const timer = setInterval(redraw, MINUTE);
    return () => clearInterval(timer);
  }, []);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const waiting = rows.filter(rowNeedsUser);
  const others = rows.filter((row) => !rowNeedsUser(row));
  const chosen = rows.filter(({ id }) => selected.has(id));
  const select = (id: string, on: boolean) =>
    setSelected((before) => new Set(on ? [...before, id] : [...before].filter((other) => other !== id)));
  return (
    <>
      {chosen.length > 0 && <Bulk rows={chosen} onDone={() => setSelected(new Set())} />}
      {waiting.length > 0 && (
        <section className="sessions-group" aria-label="Sessions that need you">
          <h2>They need you</h2>
          <SessionRows rows={waiting} selected={selected} onSelect={select} />
        </section>
      )}
      {others.length > 0 && (
        <section className="sessions-group" aria-label="Other sessions">
          {waiting.length > 0 && <h2>Others</h2>}
          <SessionRows rows={others} selected={selected} onSelect={select} />
        </section>
      )}
    </>
  );
}

function Bulk({ rows, onDone }: { rows: SessionRow[]; onDone: () => void }) {
  const [deleting, setDeleting] = useState(false);
  const { busy, problem, run } = useAsync();
  const running = rows.filter((row) => row.state === "running" || rowNeedsUser(row));
  const archived = rows.every((row) => row.archived);
  const each = (affected: SessionRow[], operation: "stop" | "remove") =>
    run(async () => {
      // The newest first: a fork reads its parent's events, so it has to be deleted before it.
      const newest = [...affected].sort((a, b) => (a.created < b.created ? 1 : -1));
      for (const { id } of newest) await sessionApi(id)[operation]();
      onDone();
    });
  const archive = () =>
    run(async () => {
      for (const { id } of rows) await sessionApi(id).archive(!archived);
      onDone();
    });
  return (
    <section className="sessions-bulk" aria-label="Selected sessions">
      <span className="grow">{plural(rows.length, "session")} selected</span>
      <Button disabled={busy || running.length === 0} onClick={() => each(running, "stop")}>
        Stop
      </Button>
      <Button disabled={busy} onClick={archive}>
        {archived ? "Take back" : "Archive"}
      </Button>
      {deleting ? (
        <Button kind="danger" disabled={busy} onClick={() => each(rows, "remove")}>
          Delete {plural(rows.length, "session")} with their files
        </Button>
      ) : (
        <Button kind="danger" disabled={busy} onClick={() => setDeleting(true)}>
          Delete …
        </Button>
      )}
      <Button kind="quiet" onClick={onDone}>
        Clear
      </Button>
      <Problem text={problem} />
    </section>
  );
}

interface RowsProps {
  rows: SessionRow[];
  selected: ReadonlySet<string>;
  onSelect: (id: string, on: boolean) => void;
}

function SessionRows({ rows, selected, onSelect }: RowsProps) {
  const [renamed, setRenamed] = useState<SessionRow | null>(null);
  const [deleted, setDeleted] = useState<SessionRow | null>(null);
  const archiving = useAsync();
  return (
    <>
      <Problem text={archiving.problem} />
      <ul className="list sessions">
        {rows.map((row) => (
          <li key={row.id}>
            <input
              type="checkbox"
              aria-label={`Select ${row.title}`}
              checked={selected.has(row.id)}
              onChange={(event) => onSelect(row.id, event.target.checked)}
            />
            <div className="grow">
              <Link to={sessionPath(row.id)} className="title cut">
                {row.title}
              </Link>
              <div className="faint cut">
                <b title={row.workspace}>{projectOf(row.workspace)}</b> · {modelName(row.model)}
                {row.parent !== null && " · fork"}
                {row.spent ? ` · ${money(row.spent)}` : ""}
                {Boolean(row.added || row.deleted) && (
                  <>
                    {" · "}
                    <span className="added">+{row.added}</span> <span className="deleted">−{row.deleted}</span>
                  </>
                )}
              </div>
            </div>
            <div className="side">
              <StateBadge session={row} />
              <time className="faint" dateTime={row.updated} title={dateAndTime(row.updated)}>
                {age(row.updated)}
              </time>
            </div>
            <Button kind="quiet" label={`Rename ${row.title}`} onClick={() => setRenamed(row)}>
              ✎
            </Button>
            <Button
              kind="quiet"
              disabled={archiving.busy}
              label={`${row.archived ? "Take back" : "Archive"} ${row.title}`}
              onClick={() => archiving.run(async () => void (await sessionApi(row.id).archive(!row.archived)))}
            >
              {row.archived ? "⤴" : "⤵"}
            </Button>
            <Button kind="quiet" label={`Delete ${row.title}`} onClick={() => setDeleted(row)}>
              ✕
            </Button>
          </li>
        ))}
      </ul>
      {renamed && <RenameSession row={renamed} onClose={() => setRenamed(null)} />}
      {deleted && <DeleteSession row={deleted} onClose={() => setDeleted(null)} />}
    </>
  );
}

/** The name of a workspace's folder. */
function projectOf(workspace: string): string {
  return workspace.split("/").findLast(Boolean) ?? workspace;
}
