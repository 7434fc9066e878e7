import { type CSSProperties, memo, useEffect, useRef, useState } from "react";
import { highlighted } from "./highlighter";

/** Lines of a file, from 1, inclusive. A new object is scrolled to, even with the same numbers. */
export interface Lines {
  first: number;
  last: number;
}

interface Props {
  text: string;
  /** Like "python"; by default it follows from the ending of `path`. */
  language?: string | undefined;
  path?: string;
  /** The number of the first line; without it lines are not numbered. */
  from?: number;
  /** Lines of numbered code to scroll to and mark. */
  marked?: Lines | null;
}

/** The most characters highlighted. */
const LONGEST = 200_000;

/** Source code with syntax highlighting. */
export const Code = memo(function Code({ text, language, path, from, marked }: Props) {
  const html = useHighlighted(text, language, path);
  const code = html === null ? <code>{text}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />;
  const count = text.split("\n").length;
  return (
    <pre className="code" tabIndex={0} aria-label={path ?? "Code"}>
      {from !== undefined && (
        <span className="gutter" aria-hidden="true">
          {Array.from({ length: count }, (_, line) => line + from).join("\n")}
        </span>
      )}
      {marked && from !== undefined && marked.first < from + count && <Mark lines={marked} from={from} />}
      {code}
    </pre>
  );
});

function Mark({ lines, from }: { lines: Lines; from: number }) {
  const mark = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    mark.current?.scrollIntoView();
  }, [lines]);
  const rows = { "--row": lines.first - from, "--rows": lines.last - lines.first + 1 } as CSSProperties;
  return <span ref={mark} className="code-mark" aria-hidden="true" style={rows} />;
}

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
