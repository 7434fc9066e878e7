import { Fragment, type KeyboardEvent, memo, type ReactNode, useMemo, useState } from "react";
import { Button } from "./Button";
import { filesOf, SIGN, type DiffFile, type DiffLine } from "./patch";

/** The most lines of a file shown at first. */
const SHOWN = 400;

/** What a reader writes about the lines of a patch. */
export interface LineNotes {
  /** Begin a note on the line. */
  write: (file: DiffFile, line: DiffLine) => void;
  /** What stands below the line. */
  below: (file: DiffFile, line: DiffLine) => ReactNode;
  /** What stands beside the header of the hunk at that index of the file's lines. */
  beside?: (file: DiffFile, at: number) => ReactNode;
}

/** A patch, file by file. With `notes`, the number of a line is a button that begins a note on it. */
export const Diff = memo(function Diff({ patch, notes }: { patch: string; notes?: LineNotes }) {
  const files = useMemo(() => filesOf(patch), [patch]);
  return (
    <div className="diff">
      {files.map((file, index) => (
        <FileDiff key={`${index} ${file.path}`} file={file} {...(notes && { notes })} />
      ))}
    </div>
  );
});

function FileDiff({ file, notes }: { file: DiffFile; notes?: LineNotes }) {
  const [all, setAll] = useState(false);
  const lines = all ? file.lines : file.lines.slice(0, SHOWN);
  return (
    <section className="diff-file" aria-label={file.path ? `Changes of ${file.path}` : "Changes"}>
      {file.path && (
        <header className="mono">
          <span className="path">{file.path}</span> <span className="added">+{file.added}</span>{" "}
          <span className="deleted">−{file.deleted}</span>
        </header>
      )}
      <div
        className="diff-lines"
        tabIndex={0}
        role="group"
        aria-label="Changed lines"
        onKeyDown={notes ? toNextLine : undefined}
      >
        {lines.map((line, index) => (
          <Fragment key={index}>
            <div className={`line ${line.kind}`}>
              <Numbers line={line} onWrite={notes && (() => notes.write(file, line))} />
              <span className="text">
                {SIGN[line.kind]}
                {line.text}
              </span>
              {line.kind === "hunk" && notes?.beside?.(file, index)}
            </div>
            {notes?.below(file, line)}
          </Fragment>
        ))}
      </div>
      {file.lines.length > lines.length && (
        <Button kind="quiet" onClick={() => setAll(true)}>
          Show {file.lines.length - lines.length} more lines
        </Button>
      )}
    </section>
  );
}

function Numbers({ line, onWrite }: { line: DiffLine; onWrite: (() => void) | undefined }) {
  const numbers = [line.old, line.new].map((number, side) => (
    <span key={side} className="number" aria-hidden={onWrite !== undefined}>
      {number ?? ""}
    </span>
  ));
  if (onWrite === undefined || (line.old === null && line.new === null)) return numbers;
  return (
    <button type="button" tabIndex={-1} title="Comment on this line" onClick={onWrite}>
      <span className="hidden">Comment on {line.new === null ? `deleted line ${line.old}` : `line ${line.new}`}</span>
      {numbers}
    </button>
  );
}

/** Up and Down move between the lines' buttons, which would be too many for Tab. */
function toNextLine(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || event.target instanceof HTMLTextAreaElement) return;
  const buttons = [...event.currentTarget.querySelectorAll<HTMLButtonElement>(".line > button")];
  const next = buttons[buttons.indexOf(document.activeElement as HTMLButtonElement) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}
