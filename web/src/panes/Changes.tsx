import { useMemo, useState } from "react";

import type { EventRecord } from "../events";
import { type SessionStore, useSessionPart } from "../store";
import type { DiffQuery } from "../../generated/types";
import { DiffView } from "./changes/DiffView";
import { Choices } from "./common/Choices";
import { Earlier } from "./common/Earlier";
import { Trouble } from "./common/Notice";
import { Steps } from "./common/Steps";
import { useFilesVersion } from "./common/useFilesVersion";
import { useLoaded } from "./common/useLoaded";

type Extent = NonNullable<DiffQuery["of"]>;

const EXTENTS: Record<Extent, string> = { total: "All", turn: "Turn", step: "Step" };
const NOTHING: Record<Extent, string> = {
  total: "Nothing has been changed.",
  turn: "Nothing was changed in this turn.",
  step: "Nothing was changed in this step.",
};

/** What the session changed: in all, since a message of the user, or in one step. */
export default function ChangesPane({ session }: { session: SessionStore }) {
  const events = useSessionPart(session, (now) => now.events);
  const version = useFilesVersion(session);
  const [of, setOf] = useState<Extent>("total");
  const [chosen, setChosen] = useState<number | null>(null);
  const begins = useMemo(() => events.filter((event) => begin(of, event)).map((event) => event.id), [events, of]);
  const found = chosen === null ? -1 : begins.indexOf(chosen);
  const at = found < 0 ? begins.length - 1 : found;
  const event = begins[at];
  const { value, error, loading } = useLoaded(async () => {
    if (of !== "total" && event === undefined) return null;
    return await session.api.diff(of === "total" ? { of } : { of, event });
  }, [session, of, event, version]);
  return (
    <div className="pane-column" aria-busy={loading}>
      <div className="pane-bar">
        <Choices
          name="Changes of"
          choices={EXTENTS}
          chosen={of}
          choose={(extent) => {
            setOf(extent);
            setChosen(null);
          }}
        />
        {of !== "total" && (
          <Steps
            at={at}
            count={begins.length}
            what={of}
            choose={(to) => {
              setChosen(to === begins.length - 1 ? null : (begins[to] ?? null));
            }}
          />
        )}
        {of !== "total" && event !== undefined && <span className="faint">since event {event}</span>}
      </div>
      {of !== "total" && <Earlier session={session} what={`${of}s`} />}
      <Trouble text={error} />
      {value && <DiffView diff={value} nothing={NOTHING[of]} />}
    </div>
  );
}

function begin(of: Extent, event: EventRecord): boolean {
  if (of === "turn") return event.type === "MessageAction" && event.source === "user";
  return of === "step" && event.type === "StepStarted";
}
