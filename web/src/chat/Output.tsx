/** The output of an action in its colours, folded if it is long; a large one is loaded piece by piece. */

import { useContext, useEffect, useRef } from "react";
import { AnsiText } from "../components/AnsiText";
import { Button } from "../components/Button";
import { Copyable } from "../components/Copyable";
import { usePager } from "../components/pager";
import { Problem } from "../components/Problem";
import type { ObservationRecord } from "../events";
import { bytes } from "../wording/format";
import { coloured, plain } from "../wording/text";
import { Unfold } from "./Folded";
import { Columns, foldText, moreText } from "./folding";
import { useFold } from "./folds";

interface Props {
  output: ObservationRecord;
  /** The output's name for screen readers. */
  name: string;
  rows?: number;
}

export function Output({ output, name, rows = 12 }: Props) {
  const [open, setOpen] = useFold(`output-${output.id}`, false);
  const columns = useContext(Columns);
  const text = coloured(output.content).replace(/\n+$/, "");
  if (output.blob !== null) {
    if (open) return <Pieces name={name} blob={output.blob} size={output.size} onClose={() => setOpen(false)} />;
    const half = Math.ceil(rows / 2);
    return (
      <>
        <Block name={name} text={foldText(text, columns, half, true).head} />
        <Unfold open={false} onChange={setOpen}>
          Show all {bytes(output.size)}
        </Unfold>
        <Block name={`the end of ${name}`} text={endOf(coloured(output.tail).trimEnd(), columns, half)} />
      </>
    );
  }
  if (!text.trim()) return null;
  const folded = foldText(text, columns, rows);
  const fits = folded.omitted === 0 && !folded.cut;
  return (
    <Copyable text={plain(output.content)} name={name}>
      <Block name={name} text={open || fits ? text : folded.head} />
      {!fits && (
        <Unfold open={open} onChange={setOpen}>
          {moreText(folded)}
        </Unfold>
      )}
      {!open && folded.tail && <Block name={`the end of ${name}`} text={folded.tail} />}
    </Copyable>
  );
}

/** The most characters of streaming output that are looked at. */
const LIVE = 8000;
const LIVE_ROWS = 14;

/** The newest rows of the output so far. */
export function LiveOutput({ text }: { text: string }) {
  const columns = useContext(Columns);
  const newest = endOf(coloured(text.slice(-LIVE)).trimEnd(), columns, LIVE_ROWS);
  return newest ? <Block name="the output so far" text={newest} /> : null;
}

/** The last rows of a text. */
function endOf(text: string, columns: number, rows: number): string {
  const { head, tail } = foldText(text, columns, 2 * rows);
  return (tail || head).split("\n").slice(-rows).join("\n");
}

function Pieces({ name, blob, size, onClose }: { name: string; blob: string; size: number; onClose: () => void }) {
  const { pieces, left, busy, problem, more } = usePager(blob, size);
  const started = useRef(false);
  useEffect(() => {
    if (!started.current) more();
    started.current = true;
  });
  return (
    <>
      {pieces.map((piece, index) => (
        <Block key={index} name={`${name}, part ${index + 1}`} text={coloured(piece)} />
      ))}
      <Problem text={problem} />
      <div className="chat-more">
        {left > 0 && (
          <Button disabled={busy} onClick={more}>
            {busy ? "Loading…" : `Show more (${bytes(left)} left)`}
          </Button>
        )}
        <Button onClick={onClose}>Show less</Button>
      </div>
    </>
  );
}

function Block({ name, text }: { name: string; text: string }) {
  return (
    <pre className="chat-output" role="group" aria-label={name}>
      <AnsiText text={text} />
    </pre>
  );
}
