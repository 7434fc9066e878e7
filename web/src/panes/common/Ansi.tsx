import { useMemo } from "react";

import { pieces } from "./ansi";

/** Output of a program, with its colours. */
export function Ansi({ text, label }: { text: string; label?: string }) {
  const parts = useMemo(() => pieces(text), [text]);
  return (
    <pre className="pane-output" tabIndex={0} aria-label={label}>
      {parts.map((part, at) => (
        <span key={at} className={part.style || undefined}>
          {part.text}
        </span>
      ))}
    </pre>
  );
}
