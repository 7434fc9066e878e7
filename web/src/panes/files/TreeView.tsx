import { type KeyboardEvent, useRef, useState } from "react";

import { bytes } from "../common/say";
import { move, rows } from "./rows";
import type { Tree } from "./useTree";

/** Files and directories to choose from, with mouse or keyboard. */
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
  const [at, setAt] = useState(0);
  const place = useRef<HTMLUListElement>(null);
  const focused = Math.min(at, shown.length - 1);

  const go = (to: number) => {
    setAt(to);
    const row = place.current?.children[to];
    if (row instanceof HTMLElement) row.focus();
  };
  const activate = (index: number) => {
    const row = shown[index];
    if (!row) return;
    setAt(index);
    if (row.entry.kind === "dir") tree.toggle(row.path, !row.open);
    choose(row.path, row.entry.kind === "dir");
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      activate(focused);
      return;
    }
    const found = move(shown, focused, event.key);
    if (!found) return;
    event.preventDefault();
    if ("to" in found) go(found.to);
    else if ("unfold" in found) tree.toggle(found.unfold, true);
    else tree.toggle(found.fold, false);
  };

  return (
    <ul className="tree" role="tree" aria-label="Files" ref={place} onKeyDown={pressed}>
      {shown.map((row, index) => (
        <li
          key={row.path}
          role="treeitem"
          className={`tree-row tree-${row.entry.kind}`}
          aria-level={row.level}
          aria-expanded={row.entry.kind === "dir" ? row.open : undefined}
          aria-selected={row.path === chosen}
          tabIndex={index === focused ? 0 : -1}
          style={{ paddingInlineStart: `${row.level * 0.9 - 0.4}rem` }}
          onClick={() => {
            activate(index);
          }}
        >
          <span className="tree-sign" aria-hidden="true">
            {row.entry.kind === "dir" ? (row.open ? "▾" : "▸") : row.entry.kind === "link" ? "↪" : ""}
          </span>
          <span className="tree-name">{row.entry.name}</span>
          {row.entry.kind === "file" && <span className="faint">{bytes(row.entry.size)}</span>}
        </li>
      ))}
    </ul>
  );
}
