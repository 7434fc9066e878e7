/** The output of an action, folded if it is long; a large one is loaded piece by piece. */

import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "../components/Button";
import { usePager } from "../components/pager";
import { Problem } from "../components/Problem";
import type { ObservationRecord } from "../events";
import { bytes } from "../wording/format";
import { bounded, plain } from "../wording/text";
import { useFold } from "./folds";

interface Props {
  output: ObservationRecord;
  /** The output's name for screen readers. */
  name: string;
  limit?: number;
}

export function Output({ output, name, limit = 12 }: Props) {
  const [open, setOpen] = useFold(`output-${output.id}`, false);
  const text = plain(output.content).replace(/\n+$/, "");
  if (open && output.blob !== null)
    return <Pieces name={name} blob={output.blob} size={output.size} onClose={() => setOpen(false)} />;
  if (!text.trim() && output.blob === null) return null;
  const half = Math.ceil(limit / 2);
  const { head, omitted, tail } =
    output.blob === null
      ? bounded(text, limit)
      : {
          head: text.split("\n").slice(0, half).join("\n"),
          omitted: bytes(output.size),
          tail: plain(output.tail).trimEnd().split("\n").slice(-half).join("\n"),
        };
  if (!omitted || open) {
    return (
      <>
        <Block name={name}>{text}</Block>
        {omitted !== 0 && <More onClick={() => setOpen(false)}>Show less</More>}
      </>
    );
  }
  return (
    <>
      <Block name={name}>{head}</Block>
      <More onClick={() => setOpen(true)}>
        {output.blob === null ? `${omitted} more lines` : `Show all ${omitted}`}
      </More>
      <Block name={`the end of ${name}`}>{tail}</Block>
    </>
  );
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
        <Block key={index} name={`${name}, part ${index + 1}`}>
          {plain(piece)}
        </Block>
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

function Block({ name, children }: { name: string; children: string }) {
  return (
    <pre className="chat-output" role="group" aria-label={name}>
      {children}
    </pre>
  );
}

function More({ onClick, children }: { onClick: () => void; children: ReactNode }) {
  return (
    <div className="chat-more">
      <Button onClick={onClick}>{children}</Button>
    </div>
  );
}
