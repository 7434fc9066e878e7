import { memo, useMemo } from "react";
import { ansiSpans } from "../wording/ansi";

/** Output of a program in its colours. */
export const AnsiText = memo(function AnsiText({ text }: { text: string }) {
  const spans = useMemo(() => ansiSpans(text), [text]);
  return spans.map((span, index) => (
    <span key={index} className={span.className || undefined} style={span.style}>
      {span.text}
    </span>
  ));
});
