/** The ways home for the session's changes: into the folder, as a pull request, as a branch, as a patch. */

import { useState } from "react";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import type { SessionStore } from "../store";
import { ApplyDialog } from "./ApplyDialog";
import { PullRequestDialog } from "./PullRequestDialog";
import { useApplyPreview } from "./useApplyPreview";
import { useBranch } from "./useBranch";
import { useUndo } from "./useUndo";
import { canApply } from "./wording";

/** `changed` tells whether the session has changes now; it may have none, and an apply that can be undone. */
export function ApplyBar({ store, changed }: { store: SessionStore; changed: boolean }) {
  const { value: preview, problem: unknown } = useApplyPreview(store);
  const [dialog, setDialog] = useState<"apply" | "request" | null>(null);
  const making = useBranch(store);
  const undoing = useUndo(store);
  const applicable = preview !== null && canApply(preview);
  const noun = preview?.request ?? "pull request";
  const close = () => setDialog(null);
  const undoable = preview !== null && preview.undoable.length > 0;
  if (!changed && !applicable && !undoable) return null;
  return (
    <>
      <div className="pane-bar apply-bar" role="group" aria-label="Get the changes">
        {applicable && <Button onClick={() => setDialog("apply")}>Apply to the folder</Button>}
        {undoable && (
          <Button disabled={undoing.busy} onClick={undoing.undo}>
            Undo the apply
          </Button>
        )}
        {changed && preview && <Button onClick={() => setDialog("request")}>Open a {noun}</Button>}
        {changed && preview && (
          <Button disabled={making.busy} onClick={making.make}>
            Make a branch
          </Button>
        )}
        {changed && (
          <a className="button" href={store.api.patchUrl} download>
            Download a patch
          </a>
        )}
      </div>
      <Problem text={undoing.problem || making.problem || unknown} />
      <p role="status" className={making.said || undoing.said ? "apply-said" : "hidden"}>
        {making.said || undoing.said}
      </p>
      {dialog === "apply" && <ApplyDialog store={store} onClose={close} />}
      {dialog === "request" && <PullRequestDialog store={store} noun={noun} onClose={close} />}
    </>
  );
}
