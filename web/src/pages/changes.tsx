import { useState } from "react";
import { sessionApi } from "../api";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import type { SessionRow } from "../../generated/types";

interface Props {
  row: SessionRow;
  onClose: () => void;
}

export function RenameSession({ row, onClose }: Props) {
  const [title, setTitle] = useState(row.title);
  const { busy, problem, run } = useAsync();
  const rename = () => run(() => sessionApi(row.id).rename(title).then(onClose));
  return (
    <Dialog title="Rename session" onClose={onClose} onSubmit={rename}>
      <Field label="Title">
        <input autoFocus required maxLength={4000} value={title} onChange={(event) => setTitle(event.target.value)} />
      </Field>
      <Problem text={problem} />
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" disabled={busy}>
          Rename
        </Button>
      </footer>
    </Dialog>
  );
}

export function DeleteSession({ row, onClose }: Props) {
  const { busy, problem, run } = useAsync();
  const remove = () => run(() => sessionApi(row.id).remove().then(onClose));
  return (
    <Dialog title="Delete session" onClose={onClose}>
      <p>
        Delete “{row.title}” with its conversation and its copy of the files? Your own folder stays as it is. This
        cannot be undone.
      </p>
      <Problem text={problem} />
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" disabled={busy} onClick={remove}>
          Delete
        </Button>
      </footer>
    </Dialog>
  );
}
