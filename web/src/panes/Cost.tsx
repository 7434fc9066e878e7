import { memo, useMemo } from "react";

import type { Usage } from "../events";
import { type SessionStore, useSessionPart } from "../store";
import type { Cost } from "../../generated/types";
import { Earlier } from "./common/Earlier";
import { Empty } from "./common/Notice";
import { clock, count, line, money, seconds, share } from "./common/say";
import { type Call, calls, KINDS, prompt, SOURCES, type Total, totals } from "./cost/totals";

/** Rows of single calls that are shown, the newest ones. */
const ROWS = 200;

/** What the session cost: tokens, what came from caches, and money with where the figure is from. */
export default function CostPane({ session }: { session: SessionStore }) {
  const events = useSessionPart(session, (now) => now.events);
  const info = useSessionPart(session, (now) => now.info);
  const made = useMemo(() => calls(events), [events]);
  const models = useMemo(() => totals(made), [made]);
  return (
    <div className="pane-scroll cost" tabIndex={0} role="region" aria-label="Cost">
      <Sum usage={info.usage} cost={info.cost} time={info.time} iterations={info.iterations} />
      {made.length === 0 && <Empty>No model has been called yet.</Empty>}
      {made.length > 0 && (
        <>
          <h2>By model {(events[0]?.id ?? 0) > 1 && <span className="faint">of the events that are loaded</span>}</h2>
          <Models rows={models} />
          <h2>By call</h2>
          <Earlier session={session} what="calls" />
          <Calls rows={made.slice(-ROWS).reverse()} />
        </>
      )}
    </div>
  );
}

function Sum({ usage, cost, time, iterations }: { usage: Usage; cost: Cost; time: number; iterations: number }) {
  const all = prompt(usage);
  const facts: [string, string, string][] = [
    ["Money", money(cost.usd), moneySaid(cost)],
    ["Prompt", count(all), `${share(usage.cache_read, all)} read from a cache`],
    ["Output", count(usage.output), "tokens"],
    ["Steps", count(iterations), `${seconds(time)} of running`],
  ];
  return (
    <>
      <dl className="cost-sum">
        {facts.map(([name, value, more]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <strong>{value}</strong> <span className="faint">{more}</span>
            </dd>
          </div>
        ))}
      </dl>
      <Bar usage={usage} />
    </>
  );
}

function moneySaid(cost: Cost): string {
  const said = cost.sources.map((source) => SOURCES[source]);
  if (cost.unpriced > 0) said.push(`without ${cost.unpriced} calls of unknown price`);
  return said.join(", ");
}

const NAMES: Record<keyof Usage, string> = {
  input: "new input",
  cache_read: "read from cache",
  cache_write: "written to cache",
  output: "output",
};

function Bar({ usage }: { usage: Usage }) {
  const all = prompt(usage) + usage.output;
  if (all === 0) return null;
  return (
    <>
      <div className="cost-bar" aria-hidden="true">
        {KINDS.map((kind) => (
          <span key={kind} className={`cost-${kind}`} style={{ flexGrow: usage[kind] }} />
        ))}
      </div>
      <ul className="cost-key" aria-label="Tokens">
        {KINDS.map((kind) => (
          <li key={kind}>
            <span className={`cost-swatch cost-${kind}`} aria-hidden="true" />
            {NAMES[kind]} {count(usage[kind])}
          </li>
        ))}
      </ul>
    </>
  );
}

function Models({ rows }: { rows: Total[] }) {
  return (
    <div className="pane-table" tabIndex={0} role="region" aria-label="Cost by model">
      <table>
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">Calls</th>
            <th scope="col">Prompt</th>
            <th scope="col">Cached</th>
            <th scope="col">Output</th>
            <th scope="col">Time</th>
            <th scope="col">Money</th>
            <th scope="col" className="words">
              Source
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.model}>
              <th scope="row" title={row.model}>
                {modelName(row.model)}
              </th>
              <td>{count(row.calls)}</td>
              <td>{count(prompt(row.usage))}</td>
              <td>{share(row.usage.cache_read, prompt(row.usage))}</td>
              <td>{count(row.usage.output)}</td>
              <td>{seconds(row.latency)}</td>
              <td>{row.unpriced === row.calls ? "?" : money(row.usd)}</td>
              <td className="words">{row.sources.map((source) => SOURCES[source]).join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Calls({ rows }: { rows: Call[] }) {
  const failed = rows.some((row) => row.failed_attempts.length > 0);
  return (
    <div className="pane-table" tabIndex={0} role="region" aria-label="Cost by call">
      <table>
        <thead>
          <tr>
            <th scope="col">Event</th>
            <th scope="col">At</th>
            <th scope="col">Prompt</th>
            <th scope="col">Cached</th>
            <th scope="col">Output</th>
            <th scope="col">Time</th>
            <th scope="col">Money</th>
            {failed && (
              <th scope="col" className="words">
                Failed before
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <OneCall key={row.id} row={row} failed={failed} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

const OneCall = memo(function OneCall({ row, failed }: { row: Call; failed: boolean }) {
  return (
    <tr>
      <th scope="row">{row.id}</th>
      <td>{clock(row.timestamp)}</td>
      <td>{count(prompt(row.usage))}</td>
      <td>{share(row.usage.cache_read, prompt(row.usage))}</td>
      <td>{count(row.usage.output)}</td>
      <td>{seconds(row.latency)}</td>
      <td>{row.cost === null ? "?" : money(row.cost)}</td>
      {failed && (
        <td className="words" title={row.failed_attempts.join("\n")}>
          {row.failed_attempts.map((said) => line(said, 60)).join("; ")}
        </td>
      )}
    </tr>
  );
});

/** A model's name without the directories of a file that stands for one. */
function modelName(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1);
}
