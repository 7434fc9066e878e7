import { useState } from "react";
import { said } from "../api";

export interface Async {
  busy: boolean;
  problem: string;
  /** Do it, unless something is being done already; why it failed is `problem` until the next attempt. */
  run: (what: () => Promise<unknown>) => void;
}

/** Something that takes time and may fail, as a form shows it. */
export function useAsync(): Async {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const run = (what: () => Promise<unknown>) => {
    if (busy) return;
    setBusy(true);
    setProblem("");
    what()
      .catch((error: unknown) => setProblem(said(error)))
      .finally(() => setBusy(false));
  };
  return { busy, problem, run };
}
