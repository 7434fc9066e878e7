import { Fragment, memo, type ReactNode, useRef } from "react";
import { type Colours, useColours } from "./colours";
import { SIGN, type DiffFile, type DiffLine, shownText } from "./patch";
import type { Piece } from "./pieces";
import type { Block, Row } from "./rows";

/** What a reader writes about the lines of a patch. */
export interface LineNotes {
  /** Begin a note on the line; the same function each time, so that only rows with changes are drawn again. */
  write: (file: DiffFile, line: DiffLine) => void;
  /** What stands below the line. */
  below: (file: DiffFile, line: DiffLine) => ReactNode;
  /** What stands beside the header of the hunk at that index of the file's lines. */
  beside?: (file: DiffFile, at: number) => ReactNode;
}

/** The height of an unwrapped line. */
const HEIGHT = 1.45;

interface Props extends Block {
  file: DiffFile;
  path: string;
  split: boolean;
  notes: LineNotes | undefined;
}

/** Rows of a hunk. */
export const DiffBlock = memo(function DiffBlock({ hunk, rows, file, path, split, notes }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const colours = useColours(box, hunk, path);
  return (
    <div className="diff-block" ref={box} style={{ containIntrinsicSize: `auto 0 auto ${rows.length * HEIGHT}em` }}>
      {rows.map((row) => (
        <Fragment key={row.at}>
          {split && isTwoSided(row) ? (
            <Sides row={row} file={file} colours={colours} write={notes?.write} />
          ) : (
            <Whole row={row} file={file} colours={colours} write={notes?.write}>
              {row.left?.kind === "hunk" && notes?.beside?.(file, row.at)}
            </Whole>
          )}
          {row.left && row.left !== row.right && notes?.below(file, row.left)}
          {row.right && notes?.below(file, row.right)}
        </Fragment>
      ))}
    </div>
  );
});

/** Whether the row has two sides; a header stands across both. */
function isTwoSided({ left, right }: Row): boolean {
  return left !== right || left?.kind === "same";
}

interface RowProps {
  row: Row;
  file: DiffFile;
  colours: Colours | null;
  write: LineNotes["write"] | undefined;
  /** What stands at the end of the row. */
  children?: ReactNode;
}

const Whole = memo(function Whole({ row: { left: line }, file, colours, write, children }: RowProps) {
  if (line === null) return null;
  return (
    <div className={`line ${line.kind}`}>
      <Numbers line={line} numbers={[line.old, line.new]} onWrite={write && (() => write(file, line))} />
      <Text line={line} pieces={colours?.get(line)} />
      {children}
    </div>
  );
});

const Sides = memo(function Sides({ row: { left, right }, file, colours, write }: RowProps) {
  return (["old", "new"] as const).map((side) => {
    const line = side === "old" ? left : right;
    if (line === null) return <div key={side} className={`line ${side} none`} />;
    // An unchanged line stands on both sides, for a screen reader and for comments only on the right one.
    const twin = side === "old" && left === right;
    return (
      <div key={side} className={`line ${side} ${line.kind}`} aria-hidden={twin}>
        <Numbers line={line} numbers={[line[side]]} onWrite={write && !twin ? () => write(file, line) : undefined} />
        <Text line={line} pieces={colours?.get(line)} />
      </div>
    );
  });
});

const Text = memo(function Text({ line, pieces }: { line: DiffLine; pieces: readonly Piece[] | undefined }) {
  return (
    <span className="text">
      {SIGN[line.kind]}
      {pieces?.map(drawn) ?? shownText(line)}
    </span>
  );
});

function drawn({ text, classes }: Piece, index: number): ReactNode {
  return (
    <Fragment key={index}>
      {classes.reduceRight<ReactNode>(
        (inner, name) => (
          <span className={name}>{inner}</span>
        ),
        text,
      )}
    </Fragment>
  );
}

interface NumbersProps {
  line: DiffLine;
  numbers: readonly (number | null)[];
  onWrite: (() => void) | undefined;
}

function Numbers({ line, numbers, onWrite }: NumbersProps) {
  const shown = numbers.map((number, index) => (
    <span key={index} className="number" aria-hidden={onWrite !== undefined}>
      {number ?? ""}
    </span>
  ));
  if (onWrite === undefined || (line.old === null && line.new === null)) return shown;
  return (
    <button type="button" tabIndex={-1} title="Comment on this line" onClick={onWrite}>
      <span className="hidden">Comment on {line.new === null ? `deleted line ${line.old}` : `line ${line.new}`}</span>
      {shown}
    </button>
  );
}
