/** The progress of a plan. */

import type { TaskState } from "../events";
import type { PlanTask } from "../../generated/types";

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

/** The state of a task, or that of all its subtasks once they are done: agents forget to complete what stands above. */
export function shownState(task: PlanTask): TaskState {
  if (task.subtasks.length === 0 || (task.state !== "open" && task.state !== "in_progress")) return task.state;
  const { done, all } = progress(task.subtasks);
  return all > 0 && done === all ? "completed" : task.state;
}

/** The innermost task that is in progress, else the first open one; null if all are done. */
export function currentTask(tasks: readonly PlanTask[]): PlanTask | null {
  const leaves = (tasks: readonly PlanTask[]): PlanTask[] =>
    tasks.flatMap((task) => (task.subtasks.length > 0 ? leaves(task.subtasks) : [task]));
  const all = leaves(tasks);
  return all.find(({ state }) => state === "in_progress") ?? all.find(({ state }) => state === "open") ?? null;
}

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
