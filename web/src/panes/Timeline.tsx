import { useCallback, useMemo, useState } from "react";

import { Button } from "../components/Button";
import { RadioGroup } from "../components/RadioGroup";
import { ForkDialog } from "../fork/ForkDialog";
import { go, sessionPath, usePage } from "../router";
import { type SessionStore, useSessionPart } from "../store";
import { Empty } from "./common/Empty";
import { EntryList } from "./timeline/EntryList";
import { type Entry, type Filter, filtered, FILTERS, positionOf, snapped } from "./timeline/outline";
import { PastState } from "./timeline/PastState";
import { Scrubber } from "./timeline/Scrubber";
import { useOutline } from "./timeline/useOutline";
import { usePages } from "./timeline/usePages";

/** All actions with their results, and other events; the files, changes and browser after each; and forks from any. */
export default function TimelinePane({ session }: { session: SessionStore }) {
  const events = usePages(session);
  const { entries } = useOutline(session);
  const [filter, setFilter] = useState<Filter>("all");
  const shown = useMemo(() => filtered(entries, filter), [entries, filter]);
  const page = usePage();
  // The address contains the event, for links to it; without one it is the newest.
  const linked = page.name === "session" && page.id === session.id ? page.event : null;
  const { head } = events;
  const entry = entries[positionOf(entries, Math.min(linked ?? head, head))];
  const at = entry?.end ?? Math.min(linked ?? head, head);
  const position = positionOf(shown, at);
  const chosen = shown[position] === entry ? position : -1;
  const choose = useCallback(
    (id: number) => go(sessionPath(session.id, "timeline", id === head ? null : id), true),
    [session, head],
  );
  const chooseEntry = useCallback((entry: Entry) => choose(entry.end), [choose]);
  const scrub = (event: number) => choose(snapped(shown, event, at) ?? event);
  const step = (position: number) => {
    const entry = shown[position];
    return entry === undefined ? null : () => choose(entry.end);
  };
  const readOnly = useSessionPart(session, (now) => now.info.read_only);
  const [forking, setForking] = useState(false);
  if (head === 0) return <Empty>No events yet.</Empty>;
  return (
    <div className="pane-column timeline">
      <div className="pane-bar">
        <Scrubber
          at={at}
          head={head}
          onChange={scrub}
          onStep={{ previous: step(chosen < 0 ? position : chosen - 1), next: step(position + 1) }}
        />
        {!readOnly && <Button onClick={() => setForking(true)}>Fork here…</Button>}
      </div>
      <div className="pane-bar timeline-filter">
        <RadioGroup label="Filter" options={FILTERS} value={filter} onChange={setFilter} />
        <span className="faint digits wide-only">
          {filter === "all" ? `${entries.length} entries` : `${shown.length} of ${entries.length} entries`}
        </span>
      </div>
      {shown.length > 0 ? (
        <EntryList entries={shown} events={events} chosen={chosen} onChange={chooseEntry} />
      ) : (
        <Empty>{entries.length === 0 ? "Loading…" : "None."}</Empty>
      )}
      <PastState session={session} events={events} at={at} entry={entry ?? { id: at, end: at }} />
      {forking && <ForkDialog session={session} event={at} onClose={() => setForking(false)} />}
    </div>
  );
}
