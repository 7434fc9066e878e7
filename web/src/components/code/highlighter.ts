// The worker that highlights, so that the page answers meanwhile.

export interface Source {
  text: string;
  /** Like "python"; by default it follows from the ending of `path`. */
  language?: string | undefined;
  path?: string | undefined;
}

let worker: Worker | null = null;

/** What to do with the worker's next answers, which come in the order of the questions. */
const waiting: ((html: string | null) => void)[] = [];

/** Return the text as escaped, highlighted HTML; null for an unknown language. */
export function highlighted(source: Source): Promise<string | null> {
  worker ??= start();
  worker.postMessage(source);
  return new Promise((resolve) => waiting.push(resolve));
}

function start(): Worker {
  const started = new Worker(new URL("./highlight.worker.ts", import.meta.url), { type: "module" });
  started.onmessage = ({ data }: MessageEvent<string | null>) => waiting.shift()?.(data);
  // Text that cannot be highlighted stays plain.
  started.onerror = () => {
    started.terminate();
    worker = null;
    for (const resolve of waiting.splice(0)) resolve(null);
  };
  return started;
}
