// The run of an evaluation, as the server follows it.

import { useEffect, useState } from "react";
import { api, errorMessage } from "../api";
import type { RolloutRow, RunView } from "../../generated/types";

/** Milliseconds between two requests: a run's folder tells nobody when it changes. */
const PAUSE = 1000;

/** The run with all its rollouts, or only that of a session; asked for again and again. */
export function useRun(session = ""): { run: RunView | null; problem: string } {
  const [run, setRun] = useState<RunView | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let closed = false;
    const load = async () => {
      try {
        const loaded = await api.evaluation(session);
        if (closed) return;
        setRun((known) => (JSON.stringify(known) === JSON.stringify(loaded) ? known : loaded));
        setProblem("");
      } catch (error) {
        if (closed) return;
        setProblem(errorMessage(error));
      }
      timer = setTimeout(() => void load(), PAUSE);
    };
    void load();
    return () => {
      closed = true;
      clearTimeout(timer);
    };
  }, [session]);
  return { run, problem };
}

export const STATUSES: Record<RolloutRow["status"], string> = {
  running: "Running",
  solved: "Solved",
  unsolved: "Not solved",
  failed: "Failed",
};

/** The rollouts of a status whose instance's id or group contains a text; "" is any. */
export function matching(rollouts: readonly RolloutRow[], q: string, status: string): RolloutRow[] {
  const text = q.trim().toLowerCase();
  return rollouts.filter(
    (row) =>
      (!status || row.status === status) &&
      (row.id.toLowerCase().includes(text) || row.group.toLowerCase().includes(text)),
  );
}
