/** The delegates as a tree. */

import type { Subtask } from "../fold";

export interface Branch {
  subtask: Subtask;
  children: Branch[];
  /** USD, including the children's. */
  cost: number;
}

/** Return the session's own delegates with theirs below them; a delegate with an unknown parent is at the top. */
export function treeOf(subtasks: ReadonlyMap<number, Subtask>): Branch[] {
  const parentOf = ({ parent }: Subtask) => (subtasks.has(parent) ? parent : 0);
  const all = [...subtasks.values()];
  const branches = (parent: number): Branch[] =>
    all
      .filter((subtask) => parentOf(subtask) === parent)
      .map((subtask) => {
        const children = branches(subtask.id);
        return { subtask, children, cost: children.reduce((sum, child) => sum + child.cost, subtask.cost) };
      });
  return branches(0);
}
