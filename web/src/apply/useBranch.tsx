import { useState } from "react";
import { useAsync } from "../components/useAsync";
import type { SessionStore } from "../store";

/** Makes a branch of the session's changes, and says which. */
export function useBranch(store: SessionStore) {
  const { busy, problem, run } = useAsync();
  const [branch, setBranch] = useState("");
  const make = () =>
    run(async () => {
      setBranch("");
      setBranch((await store.api.branch()).branch);
    });
  const said = branch && (
    <>
      The changes are on the branch <code>{branch}</code>. Your files and your current branch stay as they are.
    </>
  );
  return { busy, problem, said, make };
}
