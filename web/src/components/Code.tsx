import { memo, useEffect, useState } from "react";

interface Props {
  text: string;
  /** Like "python"; where it is left out, `path` says it by its ending. */
  language?: string | undefined;
  path?: string;
  /** Number the lines, from this one. */
  from?: number;
}

/** Characters beyond which a text is shown without colours. */
const LONGEST = 200_000;

/** A piece of a program with its colours. */
export const Code = memo(function Code({ text, language, path, from }: Props) {
  const html = useHighlighted(text, language, path);
  const code = html === null ? <code>{text}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />;
  return (
    <pre className="code" tabIndex={0} aria-label={path ?? "Code"}>
      {from !== undefined && (
        <span className="gutter" aria-hidden="true">
          {Array.from({ length: text.split("\n").length }, (_, line) => line + from).join("\n")}
        </span>
      )}
      {code}
    </pre>
  );
});

/** Return the text as highlight.js' HTML, in which all of the text is escaped; null until that is there. */
function useHighlighted(text: string, language?: string, path?: string): string | null {
  const [found, setFound] = useState<{ of: string; html: string | null } | null>(null);
  const known = language !== undefined || path !== undefined;
  useEffect(() => {
    if (!known || text.length > LONGEST) return;
    let gone = false;
    void import("./highlight").then(({ highlight }) => {
      if (!gone) setFound({ of: text, html: highlight(text, language, path) });
    });
    return () => {
      gone = true;
    };
  }, [text, language, path, known]);
  return found?.of === text ? found.html : null;
}
