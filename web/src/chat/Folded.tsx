/** Long texts, folded after their first rows. */

import { type ReactNode, useContext, useLayoutEffect, useRef, useState } from "react";
import { Button } from "../components/Button";
import { Markdown } from "../components/Markdown";
import { useFold } from "./folds";
import { Columns, foldText, moreText } from "./folding";

/** Code, folded after `rows` rows. */
export function FoldedCode(props: { id: string; text: string; rows: number; render: (text: string) => ReactNode }) {
  const [open, setOpen] = useFold(props.id, false);
  const folded = foldText(props.text, useContext(Columns), props.rows, true);
  const fits = folded.omitted === 0 && !folded.cut;
  return (
    <>
      {props.render(open || fits ? props.text : folded.head)}
      {!fits && (
        <Unfold open={open} onChange={setOpen}>
          {moreText(folded)}
        </Unfold>
      )}
    </>
  );
}

/** Characters of a folded Markdown text; about twice as many as its rows can have. */
const CHARACTERS = 12_000;

/** Markdown, folded at a height of 24 rows. */
export function FoldedMarkdown({ id, text }: { id: string; text: string }) {
  const [open, setOpen] = useFold(id, false);
  const long = text.length > CHARACTERS;
  const [high, setHigh] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current } = box;
    if (current !== null && !open) setHigh(current.scrollHeight > current.clientHeight + 1);
  });
  return (
    <>
      <div ref={box} className={open ? undefined : `chat-clamped ${high ? "cut-off" : ""}`}>
        <Markdown text={long && !open ? text.slice(0, CHARACTERS) : text} />
      </div>
      {(long || high) && (
        <Unfold open={open} onChange={setOpen}>
          More
        </Unfold>
      )}
    </>
  );
}

export function Unfold(props: { open: boolean; onChange: (open: boolean) => void; children: ReactNode }) {
  return (
    <div className="chat-more">
      <Button aria-expanded={props.open} onClick={() => props.onChange(!props.open)}>
        {props.open ? "Show less" : props.children}
      </Button>
    </div>
  );
}
