import { useState } from "react";

import { Code } from "../../components/Code";
import type { EventRecord } from "../../events";
import type { SessionStore } from "../../store";
import { View } from "../browser/View";
import { DiffView } from "../changes/DiffView";
import { Choices } from "../common/Choices";
import { Empty, Trouble } from "../common/Notice";
import { useLoaded, useSettled } from "../common/useLoaded";
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

/** Milliseconds that the slider must rest before the server is asked how all was. */
const REST = 200;
/** Events among which a picture of the browser is looked for. */
const BACK = 2000;

/** How all was after an event. */
export function PastState({ session, events, at }: { session: SessionStore; events: Events; at: number }) {
  const [view, setView] = useState<ViewName>("event");
  const settled = useSettled(at, REST);
  return (
    <div className="timeline-then">
      <div className="pane-bar">
        <Choices name="What to see" choices={VIEWS} chosen={view} choose={setView} />
        <span className="faint">after event {at}</span>
      </div>
      {view === "event" && <Whole event={events.at(at)} />}
      {view === "files" && <FilesThen session={session} at={settled} />}
      {view === "step" && <ChangesThen session={session} at={settled} of="step" />}
      {view === "total" && <ChangesThen session={session} at={settled} of="total" />}
      {view === "browser" && <BrowserThen session={session} events={events} at={settled} />}
    </div>
  );
}

function Whole({ event }: { event: EventRecord | null }) {
  if (!event) return <Empty>Loading…</Empty>;
  const { type, id, schema: _, ...rest } = event;
  return (
    <div className="pane-scroll">
      <h2>
        {type} <span className="faint">{id}</span>
      </h2>
      <Code text={JSON.stringify(rest, null, 2)} language="json" />
    </div>
  );
}

function FilesThen({ session, at }: { session: SessionStore; at: number }) {
  const tree = useTree(session, at, null);
  return <FileBrowser session={session} tree={tree} event={at} version={null} />;
}

function ChangesThen({ session, at, of }: { session: SessionStore; at: number; of: "step" | "total" }) {
  const { value, error } = useLoaded(
    () => session.api.diff(of === "step" ? { of, event: at } : { first: 0, last: at }),
    [session, at, of],
  );
  return (
    <>
      <Trouble text={error} />
      {value && (
        <DiffView
          diff={value}
          nothing={of === "step" ? "Nothing was changed in this step." : "Nothing had been changed by then."}
        />
      )}
    </>
  );
}

function BrowserThen({ session, events, at }: { session: SessionStore; events: Events; at: number }) {
  const { value, error, loading } = useLoaded(
    () => events.pages.back(at, (event) => event.type === "BrowserOutputObservation", BACK),
    [events.pages, at],
  );
  if (error) return <Trouble text={error} />;
  if (value?.type !== "BrowserOutputObservation") {
    return <Empty>{loading ? "Loading…" : "The browser had not been used by then."}</Empty>;
  }
  return <View session={session} page={value} asked={value.last_action} />;
}
