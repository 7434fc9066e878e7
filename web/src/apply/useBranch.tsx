import { useState } from "react";
import type { SessionBranch } from "../../generated/types";
import { useAsync } from "../components/useAsync";
import type { SessionStore } from "../store";

/** Makes a branch of the session's changes, and says which. */
export function useBranch(store: SessionStore) {
  const { busy, problem, run } = useAsync();
  const [made, setMade] = useState<SessionBranch | null>(null);
  const make = () =>
    run(async () => {
      setMade(null);
      setMade(await store.api.branch());
    });
  const said = made && (
    <>
      The changes are on the branch <code>{made.branch}</code>.{" "}
      {["Your files and your current branch stay as they are.", ...made.warnings].join(" ")}
    </>
  );
  return { busy, problem, said, make };
}
