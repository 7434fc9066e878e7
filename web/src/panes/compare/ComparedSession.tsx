import { sessionApi } from "../../api";
import { Link } from "../../components/Link";
import { StateBadge } from "../../components/StateBadge";
import type { EventRecord } from "../../events";
import { sessionPath } from "../../router";
import type { SessionView } from "../../../generated/types";
import { DiffView } from "../changes/DiffView";
import { Empty } from "../common/Empty";
import { promptTokens } from "../cost/totals";
import { Problem } from "../../components/Problem";
import { costText, count, duration, plural } from "../../wording/format";
import { useLoaded } from "../../components/useLoaded";
import { modelName } from "../../wording/text";
import { eventLine } from "../timeline/eventLine";
import { restOf } from "./shared";

export type View = "events" | "changes";

/** The most events shown of each session, from the first one that they do not share. */
const MOST = 500;

/** One of two compared sessions, after event `shared`. */
export function ComparedSession({
  id,
  name,
  shared,
  view,
  version,
}: {
  id: string;
  name: string;
  shared: number;
  view: View;
  version: unknown;
}) {
  const { value: info, problem } = useLoaded(() => sessionApi(id).info(), [id, version]);
  return (
    <section className="compare-side" aria-label={name}>
      <Problem text={problem} />
      {info && <Summary info={info} name={name} />}
      {view === "events" ? (
        <Events id={id} shared={shared} version={version} />
      ) : (
        <Changes id={id} shared={shared} version={version} />
      )}
    </section>
  );
}

function Summary({ info, name }: { info: SessionView; name: string }) {
  return (
    <header className="compare-summary">
      <h2>
        <Link to={sessionPath(info.id)}>{name}</Link> <StateBadge session={info} />
      </h2>
      <p className="faint">
        {info.title}, {modelName(info.model)}, {plural(info.iterations, "step")}, {duration(info.time)},{" "}
        {count(promptTokens(info.usage) + info.usage.output)} tokens, {costText(info.cost)}
      </p>
    </header>
  );
}

function Events({ id, shared, version }: { id: string; shared: number; version: unknown }) {
  const { value, problem } = useLoaded(
    () => sessionApi(id).events({ after: shared, limit: MOST }),
    [id, shared, version],
  );
  if (problem) return <Problem text={problem} />;
  if (!value) return <Empty>Loading…</Empty>;
  const events = value.events.filter(isRelevant);
  if (events.length === 0) return <Empty>No events since.</Empty>;
  const rest = restOf(value);
  return (
    <ol className="list pane-scroll compare-events" tabIndex={0} aria-label="Events since the fork">
      {events.map((event) => {
        const line = eventLine(event);
        return (
          <li key={event.id} className={`timeline-${line.tone}`}>
            <span className="timeline-id">{event.id}</span> <span className="timeline-kind">{line.kind}</span>{" "}
            {line.text}
          </li>
        );
      })}
      {rest > 0 && <li className="faint">{plural(rest, "later event")}: see the session's timeline.</li>}
    </ol>
  );
}

/** Bookkeeping events are left to the timeline. */
function isRelevant(event: EventRecord): boolean {
  return !["StepStarted", "SnapshotEvent", "CompletionEvent", "AgentDataEvent"].includes(event.type);
}

function Changes({ id, shared, version }: { id: string; shared: number; version: unknown }) {
  const { value, problem } = useLoaded(() => sessionApi(id).diff({ first: shared }), [id, shared, version]);
  if (problem) return <Problem text={problem} />;
  if (!value) return <Empty>Loading…</Empty>;
  return <DiffView diff={value} empty="No changes since." narrow />;
}
