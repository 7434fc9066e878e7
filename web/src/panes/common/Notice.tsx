import type { ReactNode } from "react";

/** What a pane says when it has nothing to show. */
export function Empty({ children }: { children: ReactNode }) {
  return <p className="pane-empty">{children}</p>;
}

/** What went wrong in a pane. */
export function Trouble({ text }: { text: string }) {
  return text ? (
    <p className="pane-trouble" role="alert">
      {text}
    </p>
  ) : null;
}
