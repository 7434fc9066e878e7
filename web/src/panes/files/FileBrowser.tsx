import { useState } from "react";

import type { SessionStore } from "../../store";
import { Empty } from "../common/Empty";
import { Problem } from "../../components/Problem";
import { TreeView } from "./TreeView";
import type { Tree } from "./useTree";
import { Viewer } from "./Viewer";

/** The files of the workspace, now or after an event, beside the chosen one. */
export function FileBrowser({
  session,
  tree,
  event,
  version,
  onDirectory,
}: {
  session: SessionStore;
  tree: Tree;
  event: number | null;
  version: unknown;
  onDirectory?: (path: string) => void;
}) {
  const [chosen, setChosen] = useState<string | null>(null);
  const choose = (path: string, directory: boolean) => {
    onDirectory?.(directory ? path : path.slice(0, Math.max(0, path.lastIndexOf("/"))));
    if (!directory) setChosen(path);
  };
  const empty = tree.directories.get("")?.length === 0;
  return (
    <div className="pane-split">
      <div className="pane-side">
        <Problem text={tree.problem} />
        {empty && <Empty>The workspace is empty.</Empty>}
        <TreeView tree={tree} chosen={chosen} choose={choose} />
      </div>
      {chosen === null ? (
        <Empty>Choose a file to read it.</Empty>
      ) : (
        <Viewer session={session} path={chosen} event={event} version={version} />
      )}
    </div>
  );
}
