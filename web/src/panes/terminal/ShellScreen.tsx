import { useEffect, useRef } from "react";

import { Button } from "../../components/Button";
import type { Shell } from "./shells";

/** A terminal of the user, and why its shell does not run. */
export function ShellScreen({ shell }: { shell: Shell }) {
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => (container.current ? shell.show(container.current) : undefined), [shell]);
  const { problem } = shell;
  return (
    <>
      {problem && (
        <div className="pane-bar" role="alert">
          <span className="grow">{problem.text}</span>
          <Button kind="primary" onClick={() => shell.start(problem.startable)}>
            {problem.startable ? "Start the sandbox" : "New shell"}
          </Button>
        </div>
      )}
      <div className="terminal-screen" ref={container} role="region" aria-label={`Terminal ${shell.number}`} />
    </>
  );
}
