import { useState } from "react";
import { useAsync } from "../components/useAsync";
import type { SessionStore } from "../store";
import { undoneText } from "./wording";

/** Undoes the last apply and says so. */
export function useUndo(store: SessionStore) {
  const { busy, problem, run } = useAsync();
  const [said, setSaid] = useState("");
  const undo = () =>
    run(async () => {
      setSaid("");
      setSaid(undoneText(await store.api.apply.undo()));
      store.folderChanged();
    });
  return { busy, problem, said, undo };
}
