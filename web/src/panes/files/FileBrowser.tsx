import type { ReactNode } from "react";

import type { Lines } from "../../components/code/Code";
import type { SessionStore } from "../../store";
import { Empty } from "../common/Empty";
import { Problem } from "../../components/Problem";
import { TreeView } from "./TreeView";
import type { Tree } from "./useTree";
import { Viewer } from "./Viewer";

/** The files of the workspace, now or after an event, or `children` in their place, beside the chosen one. */
export function FileBrowser({
  session,
  tree,
  event,
  version,
  chosen,
  lines = null,
  onChoose,
  children,
}: {
  session: SessionStore;
  tree: Tree;
  event: number | null;
  version: unknown;
  chosen: string | null;
  /** The lines to show of the chosen file. */
  lines?: Lines | null;
  onChoose: (path: string, directory: boolean) => void;
  children?: ReactNode;
}) {
  const empty = tree.directories.get("")?.length === 0;
  return (
    <div className="pane-split">
      <div className="pane-side">
        <Problem text={tree.problem} />
        {children || (
          <>
            {empty && <Empty>The workspace is empty.</Empty>}
            <TreeView tree={tree} chosen={chosen} choose={onChoose} />
          </>
        )}
      </div>
      {chosen === null ? (
        <Empty>Choose a file to read it.</Empty>
      ) : (
        <Viewer session={session} path={chosen} event={event} version={version} lines={lines} />
      )}
    </div>
  );
}
