// What is known of a rollout, in words.

import type { RolloutRow } from "../../generated/types";
import { count, duration, money, plural } from "../wording/format";
import { exact } from "../wording/text";

/** Steps, tokens, cost and duration. */
export function totals({ steps, tokens, cost, seconds }: RolloutRow): string {
  const facts = [plural(steps, "step"), `${count(tokens)} tokens`, cost === null ? "cost unknown" : money(cost)];
  return [...facts, duration(seconds)].join(" · ");
}

const KINDS: Record<RolloutRow["status"], string> = {
  running: "running",
  solved: "finished",
  unsolved: "failed",
  failed: "awaiting",
};

export function OutcomeBadge({ row }: { row: RolloutRow }) {
  const score = row.score !== null && row.score > 0 && row.score < 1 ? ` ${row.score.toFixed(2)}` : "";
  return (
    <span className={`state ${KINDS[row.status]}`}>
      {exact(row.outcome)}
      {score}
    </span>
  );
}

/** The expected answer beside the given one; nothing if there is neither. */
export function Answers({ row }: { row: RolloutRow }) {
  if (!row.expected && !row.answer) return null;
  return (
    <dl className="rollout-answers">
      <div>
        <dt>Expected</dt>
        <dd>{row.expected ? exact(row.expected) : <span className="faint">no single answer</span>}</dd>
      </div>
      <div>
        <dt>Given</dt>
        <dd>{row.answer ? exact(row.answer) : <span className="faint">none</span>}</dd>
      </div>
    </dl>
  );
}
