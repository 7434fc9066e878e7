import { useState } from "react";
import { errorMessage } from "../api";

/** An operation that takes time and may fail; only one runs at a time. */
export function useAsync() {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const run = (operation: () => Promise<unknown>): void => {
    if (busy) return;
    setBusy(true);
    setProblem("");
    operation()
      .catch((error: unknown) => setProblem(errorMessage(error)))
      .finally(() => setBusy(false));
  };
  return { busy, problem, run };
}
