/** The progress of a plan. */

import type { TaskState } from "../../events";
import type { PlanTask } from "../../../generated/types";

interface Progress {
  done: number;
  all: number;
}

/** The name and sign of each state. */
export const STATES: Record<TaskState, { sign: string; name: string }> = {
  open: { sign: "○", name: "open" },
  in_progress: { sign: "◐", name: "in progress" },
  completed: { sign: "●", name: "completed" },
  verified: { sign: "✔", name: "verified" },
  abandoned: { sign: "✕", name: "abandoned" },
};

/** Count the tasks without subtasks, except abandoned ones. */
export function progress(tasks: readonly PlanTask[]): Progress {
  let done = 0;
  let all = 0;
  for (const task of tasks) {
    if (task.subtasks.length > 0) {
      const below = progress(task.subtasks);
      done += below.done;
      all += below.all;
    } else if (task.state !== "abandoned") {
      all += 1;
      if (task.state === "completed" || task.state === "verified") done += 1;
    }
  }
  return { done, all };
}
