import { useState } from "react";

import type { SessionStore } from "../../store";
import { Empty, Trouble } from "../common/Notice";
import { TreeView } from "./TreeView";
import type { Tree } from "./useTree";
import { Viewer } from "./Viewer";

/** The workspace's files, now or as they were after an event, with the chosen one beside them. */
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
  const none = tree.directories.get("")?.length === 0;
  return (
    <div className="pane-split">
      <div className="pane-side">
        <Trouble text={tree.error} />
        {none && <Empty>The workspace is empty.</Empty>}
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
