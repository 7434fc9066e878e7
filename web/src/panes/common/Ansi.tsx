import { useMemo } from "react";

import { ansiSpans } from "./ansi";

/** Output of a program in its colours. */
export function Ansi({ text, label }: { text: string; label?: string }) {
  const spans = useMemo(() => ansiSpans(text), [text]);
  return (
    <pre className="pane-output" tabIndex={0} aria-label={label}>
      {spans.map((span, index) => (
        <span key={index} className={span.className || undefined}>
          {span.text}
        </span>
      ))}
    </pre>
  );
}
