/** The delegates as a tree. */

import type { Subtask } from "../fold";

export interface Branch {
  subtask: Subtask;
  below: Branch[];
  /** USD, with all that is below it. */
  cost: number;
}

/** Return the delegates of the task itself, each with those below it; one whose parent is not known is on top. */
export function treeOf(subtasks: ReadonlyMap<number, Subtask>): Branch[] {
  const children = new Map<number, Subtask[]>();
  for (const subtask of subtasks.values()) {
    const parent = subtasks.has(subtask.parent) ? subtask.parent : 0;
    children.set(parent, [...(children.get(parent) ?? []), subtask]);
  }
  const branches = (parent: number): Branch[] =>
    (children.get(parent) ?? []).map((subtask) => {
      const below = branches(subtask.id);
      return { subtask, below, cost: below.reduce((sum, branch) => sum + branch.cost, subtask.cost) };
    });
  return branches(0);
}

export function dollars(cost: number): string {
  return cost === 0 ? "$0" : cost < 0.01 ? `$${cost.toFixed(4)}` : `$${cost.toFixed(2)}`;
}
