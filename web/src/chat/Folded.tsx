/** A long text of which the beginning is shown until the user wants all of it. */

import type { ReactNode } from "react";
import { Button } from "../components/Button";
import { useFold } from "./folds";

export function Folded(props: { id: string; text: string; most: number; show: (text: string) => ReactNode }) {
  const [open, setOpen] = useFold(props.id, false);
  const lines = props.text.split("\n");
  const left = lines.length - props.most;
  // A button in the place of two lines would save nothing.
  if (left <= 2) return props.show(props.text);
  return (
    <>
      {props.show(open ? props.text : lines.slice(0, props.most).join("\n"))}
      <div className="chat-more">
        <Button aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : `${left} more lines`}
        </Button>
      </div>
    </>
  );
}
