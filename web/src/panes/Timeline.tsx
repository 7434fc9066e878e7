import { useCallback, useState } from "react";

import { Button } from "../components/Button";
import { go, sessionPath, usePage } from "../router";
import type { SessionStore } from "../store";
import { Empty } from "./common/Notice";
import { EventList } from "./timeline/EventList";
import { ForkDialog } from "./timeline/ForkDialog";
import { Scrubber } from "./timeline/Scrubber";
import { PastState } from "./timeline/PastState";
import { usePages } from "./timeline/usePages";

/** Every event, and how files, changes and browser were after each; from each one can go on in another way. */
export default function TimelinePane({ session }: { session: SessionStore }) {
  const events = usePages(session);
  const page = usePage();
  // The address keeps the event, so that a moment can be pointed at; without one it is the newest.
  const asked = page.name === "session" && page.id === session.id ? page.event : null;
  const chosen = Math.min(asked ?? events.head, events.head);
  const { head } = events;
  const choose = useCallback(
    (id: number) => {
      go(sessionPath(session.id, "timeline", id === head ? null : id), true);
    },
    [session, head],
  );
  const [forking, setForking] = useState(false);
  if (events.head === 0) return <Empty>Nothing has happened yet.</Empty>;
  return (
    <div className="pane-column timeline">
      <div className="pane-bar">
        <Scrubber at={chosen} head={events.head} choose={choose} />
        <Button
          onClick={() => {
            setForking(true);
          }}
        >
          Fork here…
        </Button>
      </div>
      <EventList events={events} chosen={chosen} choose={choose} />
      <PastState session={session} events={events} at={chosen} />
      {forking && (
        <ForkDialog
          session={session}
          at={chosen}
          onClose={() => {
            setForking(false);
          }}
        />
      )}
    </div>
  );
}
