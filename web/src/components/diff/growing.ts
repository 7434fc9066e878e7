import { useEffect, useState } from "react";

let last: Promise<unknown> = Promise.resolve();

/** Return how many of the parts are drawn: one at first, then one more in each task, so that the page answers between. */
export function useGrowing(count: number): number {
  const [drawn, setDrawn] = useState(1);
  useEffect(() => {
    let stale = false;
    if (drawn < count) void inTurn(() => !stale && setDrawn(drawn + 1));
    return () => {
      stale = true;
    };
  }, [drawn, count]);
  return drawn;
}

/** Do the work in a task of its own, after all work that was given before. */
function inTurn(work: () => unknown): Promise<unknown> {
  const done = last.then(() => new Promise((resolve) => setTimeout(resolve))).then(work);
  last = done.catch(() => undefined);
  return done;
}
