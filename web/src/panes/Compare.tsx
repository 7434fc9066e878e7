import { useId, useState } from "react";

import { stateName } from "../components/StateBadge";
import { type SessionStore, useSessionPart } from "../store";
import type { SessionRow } from "../../generated/types";
import { Choices } from "./common/Choices";
import { Empty, Trouble } from "./common/Notice";
import { useLoaded, useSettled } from "./common/useLoaded";
import { Side, type Sight } from "./compare/Side";
import { sharedUntil } from "./compare/shared";

const SIGHTS: Record<Sight, string> = { events: "Events", changes: "Changes" };

/** Milliseconds without an event after which what is compared is loaded again. */
const QUIET = 1000;

/** This session beside one it was forked from or that was forked from it, from where they part. */
export default function ComparePane({ session }: { session: SessionStore }) {
  const head = useSettled(
    useSessionPart(session, (snapshot) => snapshot.head),
    QUIET,
  );
  const { value: family, error } = useLoaded(() => session.api.tree(), [session, head]);
  const [chosen, setChosen] = useState("");
  const [sight, setSight] = useState<Sight>("events");
  const list = useId();
  if (error) return <Trouble text={error} />;
  if (!family) return <Empty>Loading…</Empty>;
  const own = family.find((row) => row.id === session.id);
  const others = family.filter((row) => row.id !== session.id);
  const other = others.find((row) => row.id === chosen) ?? nearest(others, own);
  if (!own || !other) return <Empty>Nothing to compare yet: fork this session at an event of its timeline.</Empty>;
  const shared = sharedUntil(family, own.id, other.id);
  return (
    <div className="pane-column">
      <div className="pane-bar">
        <label htmlFor={list}>Compare with</label>
        <select
          id={list}
          className="compare-which"
          value={other.id}
          onChange={(event) => {
            setChosen(event.target.value);
          }}
        >
          {others.map((row) => (
            <option key={row.id} value={row.id}>
              {named(row, own)}
            </option>
          ))}
        </select>
        <Choices name="What to compare" choices={SIGHTS} chosen={sight} choose={setSight} />
      </div>
      <p className="faint">They have events 1 to {shared} in common.</p>
      <div className="compare">
        <Side id={own.id} name="This session" shared={shared} sight={sight} version={head} />
        <Side key={other.id} id={other.id} name={which(other, own)} shared={shared} sight={sight} version={head} />
      </div>
    </div>
  );
}

/** The session that this one was forked from, or else its newest fork. */
function nearest(others: readonly SessionRow[], own: SessionRow | undefined): SessionRow | undefined {
  const forks = others.filter((row) => row.parent === own?.id);
  return others.find((row) => row.id === own?.parent) ?? forks.at(-1) ?? others[0];
}

function named(row: SessionRow, own: SessionRow): string {
  return `${which(row, own)}: ${row.title}, ${row.id.slice(0, 8)}, ${stateName(row.state)}`;
}

/** What a session is to this one. */
function which(row: SessionRow, own: SessionRow): string {
  if (row.id === own.parent) return "Forked from";
  return row.parent === own.id ? `Fork at event ${row.parent_event}` : "Of the same family";
}
