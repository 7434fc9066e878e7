import { Problem } from "../components/Problem";
import { exact } from "../wording/text";
import { Answers, OutcomeBadge, totals } from "./facts";
import { useRun } from "./useRun";

/** How the rollout of a session ended, above its conversation. */
export function Verdict({ session }: { session: string }) {
  const { run, problem } = useRun(session);
  const row = run?.rollouts[0];
  return (
    <section className="verdict" aria-label="Result of the rollout" tabIndex={0}>
      {row && (
        <>
          <div className="row">
            <OutcomeBadge row={row} />
            <span className="faint grow">{totals(row)}</span>
          </div>
          <Answers row={row} />
          {row.why && <pre className="rollout-why">{exact(row.why)}</pre>}
        </>
      )}
      {run && !row && <span className="faint">Another attempt has taken the place of this one.</span>}
      <Problem text={problem} />
    </section>
  );
}
