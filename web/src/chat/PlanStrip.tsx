/** The plan above the conversation: its progress and current task in one line, which opens to all tasks. */

import { currentTask, progress } from "../plan/progress";
import { Tasks } from "../plan/Tasks";
import { type SessionStore, useSessionPart } from "../store";
import { exact } from "../wording/text";

export function PlanStrip({ store }: { store: SessionStore }) {
  const plan = useSessionPart(store, (now) => now.info.plan);
  if (plan.length === 0) return null;
  const { done, all } = progress(plan);
  const current = currentTask(plan);
  return (
    <details className="chat-strip chat-plan">
      <summary>
        <strong>Plan</strong>
        <progress value={done} max={all || 1} aria-label={`Plan: ${done} of ${all} done`} />
        <span className="digits">
          {done} of {all} done
        </span>
        {current && <span className="faint cut grow">{exact(current.goal)}</span>}
      </summary>
      <Tasks tasks={plan} />
    </details>
  );
}
