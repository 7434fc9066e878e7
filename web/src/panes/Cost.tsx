import { memo, useMemo } from "react";

import type { Usage } from "../events";
import { type SessionStore, useSessionPart } from "../store";
import type { Cost, SessionView } from "../../generated/types";
import { LoadEarlier } from "./common/LoadEarlier";
import { Empty } from "./common/Empty";
import { clock, count, duration, money, plural, share } from "../wording/format";
import { firstLine, modelName } from "../wording/text";
import { type Call, callsOf, KINDS, promptTokens, SOURCES, type Total, totalsOf } from "./cost/totals";

/** The most calls shown, newest first. */
const ROWS = 200;

/** The session's tokens, cache reads, and cost with its source. */
export default function CostPane({ session }: { session: SessionStore }) {
  const events = useSessionPart(session, (now) => now.events);
  const info = useSessionPart(session, (now) => now.info);
  const modelCalls = useMemo(() => callsOf(events), [events]);
  const models = useMemo(() => totalsOf(modelCalls), [modelCalls]);
  return (
    <div className="pane-scroll cost" tabIndex={0} role="region" aria-label="Cost">
      <CostSummary info={info} />
      {modelCalls.length === 0 && <Empty>No model calls yet.</Empty>}
      {modelCalls.length > 0 && (
        <>
          <h2>By model {(events[0]?.id ?? 0) > 1 && <span className="faint">of the loaded events</span>}</h2>
          <ModelTable rows={models} />
          <h2>By call</h2>
          <LoadEarlier session={session} noun="calls" />
          <CallTable rows={modelCalls.slice(-ROWS).reverse()} />
        </>
      )}
    </div>
  );
}

function CostSummary({ info: { usage, cost, time, iterations } }: { info: SessionView }) {
  const all = promptTokens(usage);
  const facts: [string, string, string][] = [
    ["Cost", money(cost.usd), costSources(cost)],
    ["Prompt", count(all), `${share(usage.cache_read, all)} read from cache`],
    ["Output", count(usage.output), "tokens"],
    ["Steps", count(iterations), `${duration(time)} running`],
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
      <TokenBar usage={usage} />
    </>
  );
}

function costSources(cost: Cost): string {
  const facts = cost.sources.map((source) => SOURCES[source]);
  if (cost.unpriced > 0) facts.push(`without ${plural(cost.unpriced, "call")} of unknown price`);
  return facts.join(", ");
}

const KIND_NAMES: Record<keyof Usage, string> = {
  input: "new input",
  cache_read: "read from cache",
  cache_write: "written to cache",
  output: "output",
};

function TokenBar({ usage }: { usage: Usage }) {
  const all = promptTokens(usage) + usage.output;
  if (all === 0) return null;
  return (
    <>
      <div className="cost-bar" aria-hidden="true">
        {KINDS.map((kind) => (
          <span key={kind} className={`cost-${kind}`} style={{ flexGrow: usage[kind] }} />
        ))}
      </div>
      <ul className="list cost-key" aria-label="Tokens">
        {KINDS.map((kind) => (
          <li key={kind}>
            <span className={`cost-swatch cost-${kind}`} aria-hidden="true" />
            {KIND_NAMES[kind]} {count(usage[kind])}
          </li>
        ))}
      </ul>
    </>
  );
}

function ModelTable({ rows }: { rows: Total[] }) {
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
            <th scope="col">Cost</th>
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
              <td>{count(promptTokens(row.usage))}</td>
              <td>{share(row.usage.cache_read, promptTokens(row.usage))}</td>
              <td>{count(row.usage.output)}</td>
              <td>{duration(row.latency)}</td>
              <td>{row.unpriced === row.calls ? "?" : money(row.usd)}</td>
              <td className="words">{row.sources.map((source) => SOURCES[source]).join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function CallTable({ rows }: { rows: Call[] }) {
  const failed = rows.some((row) => row.failed_attempts.length > 0);
  return (
    <div className="pane-table" tabIndex={0} role="region" aria-label="Cost by call">
      <table>
        <thead>
          <tr>
            <th scope="col">Event</th>
            <th scope="col">Time of day</th>
            <th scope="col">Prompt</th>
            <th scope="col">Cached</th>
            <th scope="col">Output</th>
            <th scope="col">Time</th>
            <th scope="col">Cost</th>
            {failed && (
              <th scope="col" className="words">
                Failed attempts
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <CallRow key={row.id} row={row} failed={failed} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

const CallRow = memo(function CallRow({ row, failed }: { row: Call; failed: boolean }) {
  return (
    <tr>
      <th scope="row">{row.id}</th>
      <td>{clock(row.timestamp)}</td>
      <td>{count(promptTokens(row.usage))}</td>
      <td>{share(row.usage.cache_read, promptTokens(row.usage))}</td>
      <td>{count(row.usage.output)}</td>
      <td>{duration(row.latency)}</td>
      <td>{row.cost === null ? "?" : money(row.cost)}</td>
      {failed && (
        <td className="words" title={row.failed_attempts.join("\n")}>
          {row.failed_attempts.map((attempt) => firstLine(attempt, 60)).join("; ")}
        </td>
      )}
    </tr>
  );
});
