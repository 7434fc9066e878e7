import { useCallback, useMemo, useRef, useState } from "react";
import { Button } from "../../components/Button";
import type { LineNotes } from "../../components/diff/DiffBlock";
import { hunkAt, type DiffFile, type DiffLine } from "../../components/diff/patch";
import { useAsync } from "../../components/useAsync";
import type { SessionStore } from "../../store";
import { commentsOf, type LineComment, lineKey, saveComments, textOn, withComment, writtenIn } from "./comments";
import { CommentForm, SavedComment } from "./LineComment";

/** The unsent comments of a session, what a diff shows of them, and the hunks and files that the user rejects. */
export function useLineComments(session: SessionStore) {
  const [comments, setComments] = useState<LineComment[]>(() => commentsOf(session.id));
  const written = writtenIn(session.id);
  const [open, setOpen] = useState<string | null>(() => [...written.keys()].at(-1) ?? null);
  /** The text in the open form, which is drawn again in another view or after another file. */
  const draft = useRef([...written.values()].at(-1) ?? "");
  const rejecting = useAsync();
  // The saved list, not the drawn one: a comment may have been added since the page was drawn.
  const change = (next: (list: readonly LineComment[]) => LineComment[]) => {
    const list = next(commentsOf(session.id));
    saveComments(session.id, list);
    setComments(list);
  };
  const write = (file: DiffFile, line: DiffLine, text: string) => {
    change((list) => withComment(list, file.path, line, text));
    written.delete(lineKey(file.path, line));
    setOpen(null);
  };
  const remove = (gone: readonly LineComment[]) => change((list) => list.filter((comment) => !gone.includes(comment)));
  const reject = (file: DiffFile, at: number) =>
    rejecting.run(async () => {
      const hunk = hunkAt(file, at);
      await session.api.reject(file.path, hunk);
      session.filesChanged();
      // The agent hears of it with the comments: its own memory still has the change.
      const line = file.lines.find(({ kind }, index) => index > at && (kind === "added" || kind === "deleted"));
      const text = `I rejected this change, the file is without it:\n${hunk}`;
      if (line) change((list) => withComment(list, file.path, line, `${textOn(list, file.path, line)}\n\n${text}`));
    });
  const rejectFile = (path: string) =>
    rejecting.run(async () => {
      await session.api.reject(path, null);
      session.filesChanged();
      change((list) => withComment(list, path, null, "I rejected your changes of this file, it is as it was before."));
    });
  const besideFile = (path: string) => (
    <Button
      className="reject-file"
      disabled={rejecting.busy}
      label={`Reject the file ${path}`}
      onClick={() => rejectFile(path)}
    >
      Reject the file
    </Button>
  );
  const begin = useCallback(
    (file: DiffFile, line: DiffLine) => {
      const key = lineKey(file.path, line);
      draft.current = writtenIn(session.id).get(key) ?? textOn(commentsOf(session.id), file.path, line);
      setOpen(key);
    },
    [session],
  );
  const notes = useMemo<LineNotes>(
    () => ({
      write: begin,
      beside: (file, at) => (
        <Button kind="quiet" disabled={rejecting.busy} onClick={() => reject(file, at)}>
          Reject
        </Button>
      ),
      below: (file, line) => {
        const key = lineKey(file.path, line);
        const saved = comments.find((comment) => lineKey(comment.path, comment.line) === key);
        if (key === open) {
          return (
            <CommentForm
              label={`Comment on line ${line.new ?? line.old} of ${file.path}`}
              text={draft.current}
              onChange={(value) => {
                draft.current = value;
                if (value) written.set(key, value);
                else written.delete(key);
              }}
              onSave={(text) => write(file, line, text)}
              onCancel={() => {
                written.delete(key);
                setOpen(null);
              }}
            />
          );
        }
        if (saved === undefined) return null;
        return <SavedComment text={saved.text} onEdit={() => begin(file, line)} onRemove={() => remove([saved])} />;
      },
    }),
    [session, begin, comments, open, rejecting.busy],
  );
  return { comments, notes, besideFile, problem: rejecting.problem, remove };
}
