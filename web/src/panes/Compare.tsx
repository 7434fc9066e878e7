import { useEffect, useId, useState } from "react";

import { sessionState } from "../wording/state";
import { type SessionStore, useSessionPart } from "../store";
import type { SessionRow } from "../../generated/types";
import { LookBar } from "../components/diff/LookBar";
import { RadioGroup } from "../components/RadioGroup";
import { Empty } from "./common/Empty";
import { Problem } from "../components/Problem";
import { useLoaded, useSettled } from "../components/useLoaded";
import { ComparedSession, type View } from "./compare/ComparedSession";
import { nearest, sharedUntil } from "./compare/shared";

const VIEWS: Record<View, string> = { events: "Events", changes: "Changes" };

/** Milliseconds without an event after which both sessions are loaded again. */
const QUIET = 1000;

/** Milliseconds between two looks at the family: the page follows no other session. */
const LOOK = 2000;

/** This session beside its origin or one of its forks, after the events they share. */
export default function ComparePane({ session }: { session: SessionStore }) {
  const head = useSettled(
    useSessionPart(session, (snapshot) => snapshot.head),
    QUIET,
  );
  const [looks, setLooks] = useState(0);
  const { value: family, problem, loading } = useLoaded(() => session.api.tree(), [session, head, looks]);
  // The next look begins after the answer to the last one, which would be dropped otherwise.
  useEffect(() => {
    if (loading) return;
    const timer = setTimeout(() => setLooks((before) => before + 1), LOOK);
    return () => clearTimeout(timer);
  }, [loading, looks]);
  const [chosen, setChosen] = useState("");
  const [view, setView] = useState<View>("events");
  const list = useId();
  if (problem) return <Problem text={problem} />;
  if (!family) return <Empty>Loading…</Empty>;
  const own = family.find((row) => row.id === session.id);
  const others = family.filter((row) => row.id !== session.id);
  const other = others.find((row) => row.id === chosen) ?? nearest(others, own);
  if (!own || !other) return <Empty>No forks yet: fork this session at an event of its timeline.</Empty>;
  const shared = sharedUntil(family, own.id, other.id);
  return (
    <div className="pane-column">
      <div className="pane-bar">
        <label htmlFor={list}>Compare with</label>
        <select id={list} value={other.id} onChange={(event) => setChosen(event.target.value)}>
          {others.map((row) => (
            <option key={row.id} value={row.id}>
              {labelOf(row, own)}
            </option>
          ))}
        </select>
        <RadioGroup label="Compare" options={VIEWS} value={view} onChange={setView} />
        {view === "changes" && <LookBar narrow />}
      </div>
      <p className="faint">They share events 1 to {shared}.</p>
      <div className="compare">
        <ComparedSession id={own.id} name="This session" shared={shared} view={view} version={head} />
        <ComparedSession
          key={other.id}
          id={other.id}
          name={relation(other, own)}
          shared={shared}
          view={view}
          version={`${head} ${other.head} ${sessionState(other)}`}
        />
      </div>
    </div>
  );
}

function labelOf(row: SessionRow, own: SessionRow): string {
  return `${relation(row, own)}: ${row.title}, ${row.id.slice(0, 8)}, ${sessionState(row)}`;
}

/** The relation of a session to this one. */
function relation(row: SessionRow, own: SessionRow): string {
  if (row.id === own.parent) return "Forked from";
  return row.parent === own.id ? `Fork at event ${row.parent_event}` : "Related";
}
