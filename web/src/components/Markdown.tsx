import { memo } from "react";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { nestsTooDeep } from "../wording/text";
import { Code } from "./code/Code";
import { Copyable } from "./Copyable";

/** The most characters of a table's cell that take a row for themselves, before other columns are made narrower. */
const CELL = 20;

/** Markdown without HTML and pictures; links may be http, https or mail. What nests too deep is shown as it is. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  if (nestsTooDeep(text))
    return (
      <div className="markdown">
        <p>{text}</p>
      </div>
    );
  return (
    <div className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        components={{
          // Loading a picture would tell its host that the page is open.
          img: ({ alt, src }) => <span className="faint">[{alt || src || "picture"}]</span>,
          // A path of the workspace, or a place in the text, is no page of this server.
          a: ({ href, children }) =>
            /^(https?|mailto):/i.test(href ?? "") ? (
              <a href={href} target="_blank" rel="noopener noreferrer">
                {children}
              </a>
            ) : (
              <span title={href || undefined}>{children}</span>
            ),
          table: ({ children }) => (
            <div className="table" tabIndex={0} role="group" aria-label="Table">
              <table>{children}</table>
            </div>
          ),
          td: ({ node, children, style }) => {
            const { start, end } = node?.position ?? {};
            const width = Math.min((end?.offset ?? 0) - (start?.offset ?? 0), CELL);
            return <td style={{ ...style, minWidth: `${width}ch` }}>{children}</td>;
          },
          pre: ({ children }) => <>{children}</>,
          code: ({ className, children }) => {
            const language = /language-([\w+-]+)/.exec(className ?? "")?.[1];
            const source = String(children);
            if (language === undefined && !source.includes("\n")) return <code>{children}</code>;
            const text = source.replace(/\n$/, "");
            return (
              <Copyable text={text} name="the code">
                <Code text={text} language={language} />
              </Copyable>
            );
          },
        }}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
});
