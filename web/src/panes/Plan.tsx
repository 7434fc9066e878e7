import type { PlanTask } from "../../generated/types";
import { type SessionStore, useSessionPart } from "../store";
import { Empty } from "./common/Empty";
import { progress } from "../plan/progress";
import { Tasks } from "../plan/Tasks";

/** The plans of the agent and its delegates. */
export default function PlanPane({ session }: { session: SessionStore }) {
  const plan = useSessionPart(session, (now) => now.info.plan);
  const subtasks = useSessionPart(session, (now) => now.subtasks);
  const delegates = [...subtasks.values()].filter((subtask) => subtask.plan.length > 0);
  if (plan.length === 0 && delegates.length === 0) {
    return <Empty>No plan yet. Agents plan tasks of several steps.</Empty>;
  }
  return (
    <div className="pane-scroll pane-plan" tabIndex={0} role="region" aria-label="Plan">
      {plan.length > 0 && <PlanView name="Plan" tasks={plan} />}
      {delegates.map((subtask) => (
        <PlanView key={subtask.id} name={`${subtask.agent} (since event ${subtask.id})`} tasks={subtask.plan} />
      ))}
    </div>
  );
}

function PlanView({ name, tasks }: { name: string; tasks: PlanTask[] }) {
  const { done, all } = progress(tasks);
  return (
    <section>
      <h2>
        {name}
        <span className="faint">
          {done} of {all} done
        </span>
      </h2>
      <progress value={done} max={all || 1} aria-label={`${name}: ${done} of ${all} done`} />
      <Tasks tasks={tasks} />
    </section>
  );
}
