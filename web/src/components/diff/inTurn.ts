let last: Promise<unknown> = Promise.resolve();

/** Do the work in a task of its own, after all work that was given before, so that the page answers in between. */
export function inTurn<Result>(work: () => Result): Promise<Result> {
  const done = last.then(() => new Promise((resolve) => setTimeout(resolve))).then(work);
  last = done.catch(() => undefined);
  return done;
}
