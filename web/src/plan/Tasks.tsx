import type { PlanTask } from "../../generated/types";
import { shownState, STATES } from "./progress";

/** The tasks of a plan with their states. */
export function Tasks({ tasks }: { tasks: readonly PlanTask[] }) {
  return (
    <ul className="list plan-tasks">
      {tasks.map((task) => {
        const state = shownState(task);
        return (
          <li key={task.id}>
            <div className={`plan-task plan-${state}`}>
              <span className="plan-sign" aria-hidden="true">
                {STATES[state].sign}
              </span>
              <span className="plan-goal">{task.goal}</span>
              <span className="plan-state">{STATES[state].name}</span>
            </div>
            {task.subtasks.length > 0 && <Tasks tasks={task.subtasks} />}
          </li>
        );
      })}
    </ul>
  );
}
