import { useState } from "react";

import { Code } from "../../components/code/Code";
import type { EventRecord } from "../../events";
import { type SessionStore, useSessionPart } from "../../store";
import { DiffView } from "../changes/DiffView";
import { LookBar } from "../../components/diff/LookBar";
import { RadioGroup } from "../../components/RadioGroup";
import { Empty } from "../common/Empty";
import { PageView } from "../common/PageView";
import { Problem } from "../../components/Problem";
import { useLoaded, useSettled } from "../../components/useLoaded";
import { FileBrowser } from "../files/FileBrowser";
import { useTree } from "../files/useTree";
import type { Events } from "./usePages";

const VIEWS = {
  event: "Event",
  files: "Files",
  step: "Changed by the step",
  total: "Changed so far",
  browser: "Browser",
};
type ViewName = keyof typeof VIEWS;

/** Those of a session that can only be read: its files are gone. */
const READ_ONLY = { event: VIEWS.event, browser: VIEWS.browser };

/** Milliseconds the slider must rest before the state is loaded. */
const REST = 200;
/** The most events searched for a page of the browser. */
const BACK = 2000;

interface Props {
  session: SessionStore;
  events: Events;
  /** The event after which the state is shown. */
  at: number;
  /** The events of the entry: an action and its result, or another event. */
  entry: { id: number; end: number };
}

/** The entry's events, and the files, changes and browser after them. */
export function PastState({ session, events, at, entry }: Props) {
  const [view, setView] = useState<ViewName>("event");
  const readOnly = useSessionPart(session, (now) => now.info.read_only);
  const settled = useSettled(at, REST);
  return (
    <div className="timeline-past">
      <div className="pane-bar">
        <RadioGroup
          label="Show"
          options={readOnly ? (READ_ONLY as typeof VIEWS) : VIEWS}
          value={view}
          onChange={setView}
        />
        <span className="faint">after event {at}</span>
        {(view === "step" || view === "total") && <LookBar />}
      </div>
      {view === "event" && (
        <div className="pane-scroll" tabIndex={0} role="region" aria-label="Event">
          {[...new Set([entry.id, entry.end])].map((id) => (
            <EventFields key={id} event={events.at(id)} />
          ))}
        </div>
      )}
      {view === "files" && <PastFiles session={session} at={settled} />}
      {view === "step" && <PastChanges session={session} at={settled} of="step" />}
      {view === "total" && <PastChanges session={session} at={settled} of="total" />}
      {view === "browser" && <PastPage session={session} events={events} at={settled} />}
    </div>
  );
}

function EventFields({ event }: { event: EventRecord | null }) {
  if (!event) return <Empty>Loading…</Empty>;
  const { type, id, schema: _, ...rest } = event;
  return (
    <>
      <h2>
        {type} <span className="faint">{id}</span>
      </h2>
      <Code text={JSON.stringify(rest, null, 2)} language="json" />
    </>
  );
}

function PastFiles({ session, at }: { session: SessionStore; at: number }) {
  const tree = useTree(session, at, null);
  const [chosen, setChosen] = useState<string | null>(null);
  const choose = (path: string, isDirectory: boolean) => {
    if (!isDirectory) setChosen(path);
  };
  return <FileBrowser session={session} tree={tree} event={at} version={null} chosen={chosen} onChoose={choose} />;
}

function PastChanges({ session, at, of }: { session: SessionStore; at: number; of: "step" | "total" }) {
  const { value, problem } = useLoaded(
    () => session.api.diff(of === "step" ? { of, event: at } : { first: 0, last: at }),
    [session, at, of],
  );
  return (
    <>
      <Problem text={problem} />
      {value && <DiffView diff={value} empty={of === "step" ? "No changes in this step." : "No changes so far."} />}
    </>
  );
}

function PastPage({ session, events, at }: { session: SessionStore; events: Events; at: number }) {
  const { value, problem, loading } = useLoaded(
    () => events.pages.findLast(at, (event) => event.type === "BrowserOutputObservation", BACK),
    [events.pages, at],
  );
  if (problem) return <Problem text={problem} />;
  if (value?.type !== "BrowserOutputObservation") {
    return <Empty>{loading ? "Loading…" : "The browser is not in use yet."}</Empty>;
  }
  return <PageView session={session} page={value} action={value.last_action} />;
}
