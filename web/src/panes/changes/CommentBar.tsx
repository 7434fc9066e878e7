import { Button } from "../../components/Button";
import { Problem } from "../../components/Problem";
import { useAsync } from "../../components/useAsync";
import type { SessionStore } from "../../store";
import { type LineComment, messageOf } from "./comments";

interface Props {
  store: SessionStore;
  comments: readonly LineComment[];
  /** The comments were sent, or the user discards them. */
  onEmpty: () => void;
}

/** The number of unsent comments, and what can be done with them. */
export function CommentBar({ store, comments, onEmpty }: Props) {
  const sending = useAsync();
  const send = () =>
    sending.run(async () => {
      await store.api.send(messageOf(comments));
      onEmpty();
      void store.latest().catch(() => {});
    });
  return (
    <>
      <div className="pane-bar comment-bar" role="group" aria-label="Comments">
        {comments.length === 0 ? (
          <span className="faint">Comment on a line by its number.</span>
        ) : (
          <>
            <span role="status">{comments.length === 1 ? "1 comment" : `${comments.length} comments`}</span>
            <Button kind="primary" disabled={sending.busy} onClick={send}>
              Send to the agent
            </Button>
            <Button kind="quiet" disabled={sending.busy} onClick={onEmpty}>
              Discard
            </Button>
          </>
        )}
      </div>
      <Problem text={sending.problem} />
    </>
  );
}
