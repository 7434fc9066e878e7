import { memo, useEffect, useState } from "react";
import { highlighted } from "./highlighter";

interface Props {
  text: string;
  /** Like "python"; by default it follows from the ending of `path`. */
  language?: string | undefined;
  path?: string;
  /** The number of the first line; without it lines are not numbered. */
  from?: number;
}

/** The most characters highlighted. */
const LONGEST = 200_000;

/** Source code with syntax highlighting. */
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

/** Return the text as HTML of highlight.js, which escapes it; null until it is highlighted. */
function useHighlighted(text: string, language?: string, path?: string): string | null {
  const [found, setFound] = useState<{ source: string; html: string | null } | null>(null);
  const known = language !== undefined || path !== undefined;
  useEffect(() => {
    if (!known || text.length > LONGEST) return;
    let stale = false;
    void highlighted({ text, language, path }).then((html) => {
      if (!stale) setFound({ source: text, html });
    });
    return () => {
      stale = true;
    };
  }, [text, language, path, known]);
  return found?.source === text ? found.html : null;
}
