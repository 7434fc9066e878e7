/** What an action printed: folded where it is long, and read piece by piece where only its ends are in the event. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { api, said } from "../api";
import { Button } from "../components/Button";
import { useFold } from "./folds";
import { Pager, type ReadBytes } from "./pager";
import { bounded, bytes, plain } from "./text";

const LINES = 12;

interface Printed {
  content: string;
  tail: string;
  size: number;
  blob: string | null;
}

/** `name` tells a screen reader what was printed by what. */
export function Output({
  id,
  name,
  printed,
  lines = LINES,
}: {
  id: number;
  name: string;
  printed: Printed;
  lines?: number;
}) {
  const [open, setOpen] = useFold(`output-${id}`, false);
  const text = plain(printed.content).replace(/\n+$/, "");
  if (!text.trim() && printed.blob === null) return null;
  if (printed.blob !== null) {
    return open ? (
      <Pages name={name} blob={printed.blob} size={printed.size} close={() => setOpen(false)} />
    ) : (
      <Ends
        name={name}
        head={text}
        tail={plain(printed.tail)}
        lines={lines}
        size={printed.size}
        open={() => setOpen(true)}
      />
    );
  }
  const { head, left, tail } = bounded(text, lines);
  if (left === 0 || open) {
    return (
      <>
        <Block name={name}>{text}</Block>
        {left > 0 && <More onClick={() => setOpen(false)}>Show less</More>}
      </>
    );
  }
  return (
    <>
      <Block name={name}>{head}</Block>
      <More onClick={() => setOpen(true)}>{left} more lines</More>
      <Block name={`the end of ${name}`}>{tail}</Block>
    </>
  );
}

function Ends(props: { name: string; head: string; tail: string; lines: number; size: number; open: () => void }) {
  const half = Math.ceil(props.lines / 2);
  return (
    <>
      <Block name={props.name}>{props.head.split("\n").slice(0, half).join("\n")}</Block>
      <More onClick={props.open}>Show all {bytes(props.size)}</More>
      <Block name={`the end of ${props.name}`}>{props.tail.trimEnd().split("\n").slice(-half).join("\n")}</Block>
    </>
  );
}

function Pages({ name, blob, size, close }: { name: string; blob: string; size: number; close: () => void }) {
  const pager = useRef(new Pager(size, reader(blob)));
  const [pieces, setPieces] = useState<string[]>([]);
  const [problem, setProblem] = useState("");
  const [reading, setReading] = useState(false);
  const begun = useRef(false);
  const more = async () => {
    setReading(true);
    setProblem("");
    try {
      const piece = await pager.current.next();
      setPieces((before) => [...before, piece]);
    } catch (error) {
      setProblem(said(error));
    }
    setReading(false);
  };
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    void more();
  });
  const left = pager.current.left;
  return (
    <>
      {pieces.map((piece, number) => (
        <Block key={number} name={`${name}, part ${number + 1}`}>
          {plain(piece)}
        </Block>
      ))}
      {problem && <p role="alert">{problem}</p>}
      <div className="chat-more">
        {left > 0 && (
          <Button disabled={reading} onClick={() => void more()}>
            {reading ? "Reading…" : `Show more (${bytes(left)} left)`}
          </Button>
        )}
        <Button onClick={close}>Show less</Button>
      </div>
    </>
  );
}

function reader(blob: string): ReadBytes {
  return async (offset, length) => {
    const answer = await fetch(`${api.blobUrl(blob)}?offset=${offset}&length=${length}`);
    if (!answer.ok) throw new Error(`The output cannot be read: the server answered ${answer.status}.`);
    return answer.arrayBuffer();
  };
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
