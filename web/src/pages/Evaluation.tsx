import { Link } from "../components/Link";
import { SearchField } from "../components/SearchField";
import { ThemeSwitch } from "../components/ThemeSwitch";
import { Answers, OutcomeBadge, totals } from "../evaluation/facts";
import { matching, STATUSES, useRun } from "../evaluation/useRun";
import { evaluationPath, go, sessionPath } from "../router";
import { useTab } from "../steering/attention";
import { plural } from "../wording/format";
import { exact, modelName } from "../wording/text";
import type { RolloutRow, RunView } from "../../generated/types";

/** The rollouts of a run of an evaluation; those under way come and change while the page is open. */
export function Evaluation({ q, status: wanted }: { q: string; status: string }) {
  const status = wanted in STATUSES ? wanted : "";
  const { run, problem } = useRun();
  useTab(run ? `${run.benchmark} · ${run.agent}` : "Evaluation", false);
  const rows = run && matching(run.rollouts, q, status);
  return (
    <main className="page">
      <header>
        <h1>{run ? exact(run.benchmark) : "Evaluation"}</h1>
        <ThemeSwitch />
      </header>
      {run && <About run={run} />}
      <div className="row" role="search">
        <SearchField
          label="Search rollouts"
          placeholder="Search ids and groups of instances"
          value={q}
          onChange={(text) => go(evaluationPath(text, status), true)}
        />
        <select
          aria-label="Status"
          value={status}
          onChange={(event) => go(evaluationPath(q, event.target.value), true)}
        >
          <option value="">All</option>
          {Object.entries(STATUSES).map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </div>
      <p role="status" className={problem ? "error-text" : "hidden"}>
        {problem || (rows ? plural(rows.length, "rollout") : "")}
      </p>
      {rows && rows.length > 0 && (
        <ul className="list sessions rollouts" aria-label="Rollouts">
          {rows.map((row) => (
            <Rollout key={`${row.id} ${row.trial}`} row={row} />
          ))}
        </ul>
      )}
      {rows?.length === 0 && (
        <p className="faint">{run?.rollouts.length ? "No rollout matches." : "No rollout has begun yet."}</p>
      )}
    </main>
  );
}

function About({ run }: { run: RunView }) {
  const counts = Object.entries(STATUSES)
    .map(([name, title]) => ({ title, number: run.rollouts.filter((row) => row.status === name).length }))
    .filter(({ number }) => number > 0)
    .map(({ title, number }) => `${number} ${title.toLowerCase()}`);
  const done = run.rollouts.filter((row) => row.status !== "running").length;
  return (
    <p className="run-about">
      {exact(run.agent)}
      {run.model && ` · ${modelName(run.model)}`} · split {exact(run.split)} · {exact(run.metric)}
      <br />
      <b>
        {done} of {plural(run.total, "rollout")} done
      </b>
      {counts.length > 0 && `: ${counts.join(", ")}`}
      <br />
      <span className="faint">{exact(run.folder)}</span>
    </p>
  );
}

function Rollout({ row }: { row: RolloutRow }) {
  const name = exact(row.name);
  return (
    <li>
      <div className="grow">
        {row.session ? (
          <Link to={sessionPath(row.session)} className="title cut">
            {name}
          </Link>
        ) : (
          <span className="title cut">{name}</span>
        )}
        <div className="faint cut">
          {row.group && `${exact(row.group)} · `}
          {totals(row)}
        </div>
        <Answers row={row} />
        {row.status === "failed" && row.why && <div className="faint cut">{exact(row.why)}</div>}
      </div>
      <div className="side">
        <OutcomeBadge row={row} />
      </div>
    </li>
  );
}
