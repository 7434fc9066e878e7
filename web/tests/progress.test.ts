import { expect, test } from "vitest";

import type { TaskState } from "../src/events";
import type { PlanTask } from "../generated/types";
import { currentTask, progress, shownState } from "../src/plan/progress";

const task = (state: TaskState, ...subtasks: PlanTask[]): PlanTask => ({ id: "0", goal: "it", state, subtasks });

test("tasks without others below them count, but not the abandoned", () => {
  const plan = [
    task("in_progress", task("completed"), task("verified"), task("open"), task("abandoned")),
    task("open"),
  ];
  expect(progress(plan)).toEqual({ done: 2, all: 4 });
  expect(progress([])).toEqual({ done: 0, all: 0 });
});

test("a task is completed with the last one below it, whatever the agent forgot", () => {
  expect(shownState(task("in_progress", task("completed"), task("abandoned")))).toBe("completed");
  expect(shownState(task("in_progress", task("completed"), task("open")))).toBe("in_progress");
  expect(shownState(task("abandoned", task("completed")))).toBe("abandoned");
  expect(shownState(task("open", task("abandoned")))).toBe("open");
});

test("the current task is the innermost in progress, else the first open one", () => {
  const inner = task("in_progress");
  expect(currentTask([task("in_progress", task("open"), inner)])).toBe(inner);
  const next = task("open");
  expect(currentTask([task("in_progress", task("completed"), next)])).toBe(next);
  expect(currentTask([task("completed")])).toBeNull();
});
