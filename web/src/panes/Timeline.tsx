import { useCallback, useState } from "react";

import { Button } from "../components/Button";
import { ForkDialog } from "../fork/ForkDialog";
import { go, sessionPath, usePage } from "../router";
import type { SessionStore } from "../store";
import { Empty } from "./common/Empty";
import { EventList } from "./timeline/EventList";
import { Scrubber } from "./timeline/Scrubber";
import { PastState } from "./timeline/PastState";
import { usePages } from "./timeline/usePages";

/** All events; the files, changes and browser after each; and forks from any of them. */
export default function TimelinePane({ session }: { session: SessionStore }) {
  const events = usePages(session);
  const page = usePage();
  // The address contains the event, for links to it; without one it is the newest.
  const linked = page.name === "session" && page.id === session.id ? page.event : null;
  const chosen = Math.min(linked ?? events.head, events.head);
  const { head } = events;
  const choose = useCallback(
    (id: number) => {
      go(sessionPath(session.id, "timeline", id === head ? null : id), true);
    },
    [session, head],
  );
  const [forking, setForking] = useState(false);
  if (events.head === 0) return <Empty>No events yet.</Empty>;
  return (
    <div className="pane-column timeline">
      <div className="pane-bar">
        <Scrubber at={chosen} head={events.head} onChange={choose} />
        <Button onClick={() => setForking(true)}>Fork here…</Button>
      </div>
      <EventList events={events} chosen={chosen} onChange={choose} />
      <PastState session={session} events={events} at={chosen} />
      {forking && <ForkDialog session={session} event={chosen} onClose={() => setForking(false)} />}
    </div>
  );
}
