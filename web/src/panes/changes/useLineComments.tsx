import { useState } from "react";
import type { LineNotes } from "../../components/Diff";
import { commentsOf, type LineComment, lineKey, saveComments, withComment } from "./comments";
import { CommentForm, SavedComment } from "./LineComment";

/** The unsent comments of a session, and what a diff shows of them below its lines. */
export function useLineComments(session: string) {
  const [comments, setComments] = useState<LineComment[]>(() => commentsOf(session));
  const [open, setOpen] = useState<string | null>(null);
  const change = (list: LineComment[]) => {
    saveComments(session, list);
    setComments(list);
    setOpen(null);
  };
  const notes: LineNotes = {
    write: (file, line) => setOpen(lineKey(file.path, line)),
    below: (file, line) => {
      const key = lineKey(file.path, line);
      const saved = comments.find((comment) => lineKey(comment.path, comment.line) === key);
      if (key === open) {
        return (
          <CommentForm
            label={`Comment on line ${line.new ?? line.old} of ${file.path}`}
            text={saved?.text ?? ""}
            onSave={(text) => change(withComment(comments, file, line, text))}
            onCancel={() => setOpen(null)}
          />
        );
      }
      if (saved === undefined) return null;
      return (
        <SavedComment
          text={saved.text}
          onEdit={() => setOpen(key)}
          onRemove={() => change(withComment(comments, file, line, ""))}
        />
      );
    },
  };
  return { comments, notes, discard: () => change([]) };
}
