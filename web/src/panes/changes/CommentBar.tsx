import { Button } from "../../components/Button";
import { Problem } from "../../components/Problem";
import { useAsync } from "../../components/useAsync";
import type { SessionStore } from "../../store";
import { plural } from "../../wording/format";
import { type LineComment, messageOf } from "./comments";

interface Props {
  store: SessionStore;
  comments: readonly LineComment[];
  /** Comments were sent, or the user discards them. */
  onRemove: (comments: readonly LineComment[]) => void;
}

/** The number of unsent comments, and what can be done with them. */
export function CommentBar({ store, comments, onRemove }: Props) {
  const sending = useAsync();
  const send = () =>
    sending.run(async () => {
      await store.api.send(messageOf(comments));
      onRemove(comments);
      void store.latest().catch(() => {});
    });
  return (
    <>
      <div className="pane-bar comment-bar" role="group" aria-label="Comments">
        {comments.length === 0 ? (
          <span className="faint">Comment on a line by its number.</span>
        ) : (
          <>
            <span role="status">{plural(comments.length, "comment")}</span>
            <Button kind="primary" disabled={sending.busy} onClick={send}>
              Send to the agent
            </Button>
            <Button kind="quiet" disabled={sending.busy} onClick={() => onRemove(comments)}>
              Discard
            </Button>
          </>
        )}
      </div>
      {comments
        .filter((comment) => comment.line === null)
        .map((comment) => (
          <div key={comment.path} className="pane-bar">
            <span className="mono cut">{comment.path}</span>
            <span className="grow">{comment.text}</span>
            <Button kind="quiet" label={`Remove the comment on ${comment.path}`} onClick={() => onRemove([comment])}>
              ✕
            </Button>
          </div>
        ))}
      <Problem text={sending.problem} />
    </>
  );
}
