import { sessionApi } from "../../api";
import { StateBadge } from "../../components/StateBadge";
import type { EventRecord } from "../../events";
import { go, sessionPath } from "../../router";
import type { SessionView } from "../../../generated/types";
import { DiffView } from "../changes/DiffView";
import { Empty, Trouble } from "../common/Notice";
import { count, money, seconds } from "../common/say";
import { useLoaded } from "../common/useLoaded";
import { describe } from "../timeline/describe";

export type Sight = "events" | "changes";

/** Events that are shown of each session, the first after they part. */
const MOST = 500;

/** One of two sessions that are compared, from event `shared` on. */
export function Side({
  id,
  name,
  shared,
  sight,
  version,
}: {
  id: string;
  name: string;
  shared: number;
  sight: Sight;
  version: unknown;
}) {
  const { value: info, error } = useLoaded(() => sessionApi(id).info(), [id, version]);
  return (
    <section className="compare-side" aria-label={name}>
      <Trouble text={error} />
      {info && <Summary info={info} name={name} />}
      {sight === "events" ? (
        <Events id={id} shared={shared} version={version} />
      ) : (
        <Changes id={id} shared={shared} version={version} />
      )}
    </section>
  );
}

function Summary({ info, name }: { info: SessionView; name: string }) {
  const { input, cache_read, cache_write, output } = info.usage;
  const path = sessionPath(info.id);
  return (
    <header className="compare-summary">
      <h2>
        <a
          href={path}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey) return;
            event.preventDefault();
            go(path);
          }}
        >
          {name}
        </a>{" "}
        <StateBadge state={info.state} />
      </h2>
      <p className="faint">
        {info.title}, {info.model.slice(info.model.lastIndexOf("/") + 1)}, {info.iterations} steps, {seconds(info.time)}
        , {count(input + cache_read + cache_write + output)} tokens, {money(info.cost.usd)}
      </p>
    </header>
  );
}

function Events({ id, shared, version }: { id: string; shared: number; version: unknown }) {
  const { value, error } = useLoaded(
    async () => (await sessionApi(id).events({ after: shared, limit: MOST })).events.filter(telling),
    [id, shared, version],
  );
  if (error) return <Trouble text={error} />;
  if (!value) return <Empty>Loading…</Empty>;
  if (value.length === 0) return <Empty>Nothing has happened since.</Empty>;
  return (
    <ol className="pane-scroll compare-events" tabIndex={0} aria-label="Events since they part">
      {value.map((event) => {
        const told = describe(event);
        return (
          <li key={event.id} className={`timeline-${told.tone}`}>
            <span className="timeline-id">{event.id}</span> <span className="timeline-what">{told.what}</span>{" "}
            {told.text}
          </li>
        );
      })}
    </ol>
  );
}

/** Whether an event tells how the session went; bookkeeping is for the timeline. */
function telling(event: EventRecord): boolean {
  return !["StepStarted", "SnapshotEvent", "CompletionEvent", "AgentDataEvent"].includes(event.type);
}

function Changes({ id, shared, version }: { id: string; shared: number; version: unknown }) {
  const { value, error } = useLoaded(() => sessionApi(id).diff({ first: shared }), [id, shared, version]);
  if (error) return <Trouble text={error} />;
  if (!value) return <Empty>Loading…</Empty>;
  return <DiffView diff={value} nothing="Nothing was changed since." />;
}
