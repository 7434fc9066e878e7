/** The ways home for the session's changes: into the folder, as a patch, as a branch. */

import { useState } from "react";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import type { SessionStore } from "../store";
import { ApplyDialog } from "./ApplyDialog";
import { useApplyPreview } from "./useApplyPreview";
import { useUndo } from "./useUndo";
import { pendingCount } from "./wording";

export function ApplyBar({ store }: { store: SessionStore }) {
  const { value: preview } = useApplyPreview(store);
  const [dialog, setDialog] = useState(false);
  const [branch, setBranch] = useState("");
  const making = useAsync();
  const undoing = useUndo(store);
  const make = () =>
    making.run(async () => {
      setBranch("");
      setBranch((await store.api.branch()).branch);
    });
  return (
    <>
      <div className="pane-bar apply-bar" role="group" aria-label="Get the changes">
        {preview && pendingCount(preview) > 0 && <Button onClick={() => setDialog(true)}>Apply to the folder</Button>}
        {preview && preview.undoable.length > 0 && (
          <Button disabled={undoing.busy} onClick={undoing.undo}>
            Undo the apply
          </Button>
        )}
        {preview && (
          <Button disabled={making.busy} onClick={make}>
            Make a branch
          </Button>
        )}
        <a className="button" href={store.api.patchUrl} download>
          Download a patch
        </a>
      </div>
      <Problem text={undoing.problem || making.problem} />
      <p role="status" className={branch || undoing.said ? "apply-said" : "hidden"}>
        {branch ? (
          <>
            The changes are on the branch <code>{branch}</code>. Your files and your current branch stay as they are.
          </>
        ) : (
          undoing.said
        )}
      </p>
      {dialog && <ApplyDialog store={store} onClose={() => setDialog(false)} />}
    </>
  );
}
