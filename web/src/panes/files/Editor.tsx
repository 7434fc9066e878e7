import { lazy, Suspense, useRef, useState } from "react";

import { ApiError } from "../../api";
import { Button } from "../../components/Button";
import type { Lines } from "../../components/code/Code";
import { Problem } from "../../components/Problem";
import { useAsync } from "../../components/useAsync";
import type { SessionStore } from "../../store";
import { commentsOf, saveComments, withComment } from "../changes/comments";
import { type Edit, saveEdit, textOf } from "./edits";

const CodeEditor = lazy(() => import("./CodeEditor"));

/** The agent hears of an edit with the comments: its own memory has the file as it was. */
const EDITED = "I edited this file by hand: read it again before you change it.";

interface Props {
  session: SessionStore;
  path: string;
  edit: Edit;
  /** The lines at which the editor begins. */
  lines: Lines | null;
  onClose: () => void;
}

/** Return the file's text; null if it has been deleted, or is no text any more. */
async function textNow(session: SessionStore, path: string): Promise<string | null> {
  try {
    const answer = await session.api.files.read(path);
    return textOf(new Uint8Array(await answer.arrayBuffer()));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** A file being edited, until it is saved to the session's copy or the edit is discarded. */
export function Editor({ session, path, edit, lines, onClose }: Props) {
  const [{ before, text }, setEdit] = useState(edit);
  /** The file's text when the user was last told of it. */
  const [told, setTold] = useState<string | null>(edit.before);
  const changed = told !== before;
  const saving = useAsync();
  const latest = useRef(edit.text);
  const keep = (next: Edit) => {
    latest.current = next.text;
    saveEdit(session.id, path, next);
    setEdit(next);
  };
  const close = () => {
    saveEdit(session.id, path, null);
    onClose();
  };
  const save = () => {
    if (text === before) return; // Ctrl+S without an edit
    saving.run(async () => {
      const now = await textNow(session, path);
      if (now !== told) {
        setTold(now);
        return;
      }
      await session.api.files.upload(path, new Blob([text]));
      session.filesChanged();
      saveComments(session.id, withComment(commentsOf(session.id), path, null, EDITED));
      if (latest.current === text) close();
      else {
        // More was typed during the upload: the editor stays open with it.
        setTold(text);
        keep({ before: text, text: latest.current });
      }
    });
  };
  return (
    <>
      <div className="pane-bar" role="group" aria-label="Edit">
        <Button kind="primary" title="Ctrl+S" disabled={saving.busy || text === before} onClick={save}>
          {changed ? "Overwrite" : "Save"}
        </Button>
        <Button kind="quiet" disabled={saving.busy} onClick={close}>
          {text === before ? "Close" : "Discard"}
        </Button>
        {changed && <span role="alert">The file has changed since you began to edit it.</span>}
      </div>
      <Problem text={saving.problem} />
      <Suspense fallback={<p className="faint">Loading …</p>}>
        <CodeEditor
          path={path}
          text={text}
          lines={lines}
          onChange={(next) => keep({ before, text: next })}
          onSave={save}
        />
      </Suspense>
    </>
  );
}
