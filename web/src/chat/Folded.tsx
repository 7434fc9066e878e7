/** A long text, folded after its first lines. */

import type { ReactNode } from "react";
import { Button } from "../components/Button";
import { useFold } from "./folds";

export function Folded(props: { id: string; text: string; limit: number; render: (text: string) => ReactNode }) {
  const [open, setOpen] = useFold(props.id, false);
  const lines = props.text.split("\n");
  const folded = lines.length - props.limit;
  // A button instead of two lines would save nothing.
  if (folded <= 2) return props.render(props.text);
  return (
    <>
      {props.render(open ? props.text : lines.slice(0, props.limit).join("\n"))}
      <div className="chat-more">
        <Button aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : `${folded} more lines`}
        </Button>
      </div>
    </>
  );
}
