import { expect, test } from "vitest";

import type { TaskState } from "../../src/events";
import type { PlanTask } from "../../generated/types";
import { progress } from "../../src/panes/plan/progress";

const task = (state: TaskState, ...subtasks: PlanTask[]): PlanTask => ({ id: "0", goal: "it", state, subtasks });

test("tasks without others below them count, but not the abandoned", () => {
  const plan = [
    task("in_progress", task("completed"), task("verified"), task("open"), task("abandoned")),
    task("open"),
  ];
  expect(progress(plan)).toEqual({ done: 2, all: 4 });
  expect(progress([])).toEqual({ done: 0, all: 0 });
});
