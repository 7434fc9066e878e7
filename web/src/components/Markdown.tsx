import { memo } from "react";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { Code } from "./Code";

/** Text as Markdown: no HTML of its own, and no picture or link but to http, https and mail. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        components={{
          // A picture of another host would tell it that the page is read.
          img: ({ alt, src }) => <span className="faint">[{alt || src || "picture"}]</span>,
          a: ({ href, children }) => (
            <a href={href} target="_blank" rel="noopener noreferrer">
              {children}
            </a>
          ),
          pre: ({ children }) => <>{children}</>,
          code: ({ className, children }) => {
            const language = /language-([\w+-]+)/.exec(className ?? "")?.[1];
            const inside = String(children);
            if (language === undefined && !inside.includes("\n")) return <code>{children}</code>;
            return <Code text={inside.replace(/\n$/, "")} language={language} />;
          },
        }}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
});
