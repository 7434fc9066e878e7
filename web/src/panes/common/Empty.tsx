import type { ReactNode } from "react";

/** The text of a pane without content. */
export function Empty({ children }: { children: ReactNode }) {
  return <p className="pane-empty">{children}</p>;
}
