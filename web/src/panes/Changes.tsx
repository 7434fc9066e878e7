import { useMemo, useState } from "react";

import { ApplyBar } from "../apply/ApplyBar";
import type { EventRecord } from "../events";
import { type SessionStore, useSessionPart } from "../store";
import type { DiffQuery } from "../../generated/types";
import { CommentBar } from "./changes/CommentBar";
import { DiffView } from "./changes/DiffView";
import { useLineComments } from "./changes/useLineComments";
import { LookBar } from "../components/diff/LookBar";
import { RadioGroup } from "../components/RadioGroup";
import { LoadEarlier } from "./common/LoadEarlier";
import { Problem } from "../components/Problem";
import { Stepper } from "./common/Stepper";
import { useFilesVersion } from "./common/useFilesVersion";
import { useLoaded } from "../components/useLoaded";

type Extent = NonNullable<DiffQuery["of"]>;

const EXTENTS: Record<Extent, string> = { total: "All", turn: "Turn", step: "Step" };
const EMPTY: Record<Extent, string> = {
  total: "No changes.",
  turn: "No changes in this turn.",
  step: "No changes in this step.",
};

/** The changes of the session, of a turn, or of a step. */
export default function ChangesPane({ session }: { session: SessionStore }) {
  const events = useSessionPart(session, (now) => now.events);
  const version = useFilesVersion(session);
  const { comments, notes, besideFile, problem: rejectProblem, remove } = useLineComments(session);
  const [extent, setExtent] = useState<Extent>("total");
  const [chosen, setChosen] = useState<number | null>(null);
  const starts = useMemo(() => events.filter((event) => isStart(extent, event)).map(({ id }) => id), [events, extent]);
  const position = chosen === null ? -1 : starts.indexOf(chosen);
  const index = position < 0 ? starts.length - 1 : position;
  const event = starts[index];
  const { value, problem, loading } = useLoaded(async () => {
    if (extent === "total") return session.api.diff({ of: extent });
    return event === undefined ? null : session.api.diff({ of: extent, event });
  }, [session, extent, event, version]);
  // The line numbers of a past step are not those of the files as they are now.
  const total = extent === "total" ? value : null;
  return (
    <div className="pane-column" aria-busy={loading}>
      <div className="pane-bar">
        <RadioGroup
          label="Changes of"
          options={EXTENTS}
          value={extent}
          onChange={(next) => {
            setExtent(next);
            setChosen(null);
          }}
        />
        {extent !== "total" && (
          <Stepper
            index={index}
            count={starts.length}
            noun={extent}
            onChange={(next) => setChosen(next === starts.length - 1 ? null : (starts[next] ?? null))}
          />
        )}
        {extent !== "total" && event !== undefined && <span className="faint">since event {event}</span>}
        <LookBar />
      </div>
      {extent !== "total" && <LoadEarlier session={session} noun={`${extent}s`} />}
      <Problem text={problem || rejectProblem} />
      {total && <ApplyBar store={session} changed={total.files.length > 0} />}
      {total && (total.files.length > 0 || comments.length > 0) && (
        <CommentBar store={session} comments={comments} onRemove={remove} />
      )}
      {value && <DiffView diff={value} empty={EMPTY[extent]} {...(total && { notes, besideFile })} />}
    </div>
  );
}

function isStart(extent: Extent, event: EventRecord): boolean {
  if (extent === "turn") return event.type === "MessageAction" && event.source === "user";
  return extent === "step" && event.type === "StepStarted";
}
