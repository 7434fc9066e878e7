import { type KeyboardEvent, useRef, useState } from "react";

import { bytes } from "../../wording/format";
import { move, rows } from "./rows";
import type { Tree } from "./useTree";

/** A tree of files and directories, for mouse and keyboard. */
export function TreeView({
  tree,
  chosen,
  choose,
}: {
  tree: Tree;
  chosen: string | null;
  choose: (path: string, directory: boolean) => void;
}) {
  const shown = rows(tree.directories, tree.open);
  const [active, setActive] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const focused = Math.min(active, shown.length - 1);

  const go = (to: number) => {
    setActive(to);
    const row = list.current?.children[to];
    if (row instanceof HTMLElement) row.focus();
  };
  const activate = (index: number) => {
    const row = shown[index];
    if (!row) return;
    setActive(index);
    if (row.entry.kind === "dir") tree.toggle(row.path, !row.open);
    choose(row.path, row.entry.kind === "dir");
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      activate(focused);
      return;
    }
    const result = move(shown, focused, event.key);
    if (!result) return;
    event.preventDefault();
    if ("to" in result) go(result.to);
    else if ("unfold" in result) tree.toggle(result.unfold, true);
    else tree.toggle(result.fold, false);
  };

  return (
    <ul className="list tree" role="tree" aria-label="Files" ref={list} onKeyDown={onKey}>
      {shown.map((row, index) => (
        <li
          key={row.path}
          role="treeitem"
          className={"tree-row pane-choice"}
          aria-level={row.level}
          aria-expanded={row.entry.kind === "dir" ? row.open : undefined}
          aria-selected={row.path === chosen}
          tabIndex={index === focused ? 0 : -1}
          style={{ paddingInlineStart: `${row.level * 0.9 - 0.4}rem` }}
          onClick={() => activate(index)}
        >
          <span className="tree-sign" aria-hidden="true">
            {row.entry.kind === "dir" ? (row.open ? "▾" : "▸") : row.entry.kind === "link" ? "↪" : ""}
          </span>
          <span className="grow cut">{row.entry.name}</span>
          {row.entry.kind === "file" && <span className="faint">{bytes(row.entry.size)}</span>}
        </li>
      ))}
    </ul>
  );
}
