import { useState } from "react";

import { ApiError } from "../../api";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Problem } from "../../components/Problem";
import { useAsync } from "../../components/useAsync";
import type { SessionStore } from "../../store";
import { joined } from "./kind";

interface Props {
  session: SessionStore;
  /** The directory that the path begins with. */
  directory: string;
  onCreate: (path: string) => void;
  onClose: () => void;
}

/** Asks for a path and creates an empty file there in the session's copy. */
export function NewFile({ session, directory, onCreate, onClose }: Props) {
  const [path, setPath] = useState(joined(directory, ""));
  const { busy, problem, run } = useAsync();
  const create = () =>
    run(async () => {
      if (await exists(session, path)) throw new Error(`${path} exists: choose another path.`);
      await session.api.files.upload(path, new Blob([]));
      onCreate(path);
      onClose();
    });
  return (
    <Dialog title="New file" onClose={onClose} onSubmit={create}>
      <Field label="Path in the workspace">
        <input className="mono" autoFocus required value={path} onChange={(event) => setPath(event.target.value)} />
      </Field>
      <Problem text={problem} />
      <Button type="submit" kind="primary" disabled={busy}>
        Create
      </Button>
    </Dialog>
  );
}

/** Whether the session's copy has a file of that path. Throws ApiError, also for a directory. */
export async function exists(session: SessionStore, path: string): Promise<boolean> {
  try {
    const answer = await session.api.files.read(path);
    await answer.body?.cancel();
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}
