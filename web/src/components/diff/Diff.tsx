import { memo, useMemo, useState } from "react";
import { exact } from "../../wording/text";
import { Button } from "../Button";
import { DiffBlock, type LineNotes } from "./DiffBlock";
import { useGrowing } from "./growing";
import { toNextLine } from "./keys";
import { type Look, useLook } from "./look";
import { filesOf, type DiffFile } from "./patch";
import { blocksOf, hunksOf } from "./rows";

/** The most lines of a file shown at first. */
const SHOWN = 400;

interface Props {
  patch: string;
  /** The path of the file of a patch without headers, whose language the text is coloured as. */
  path?: string;
  /** Unified whatever the user chose, as two columns have no room. */
  narrow?: boolean;
  notes?: LineNotes;
}

/** A patch, file by file. With `notes`, the number of a line is a button that begins a note on it. */
export const Diff = memo(function Diff({ patch, path = "", narrow = false, notes }: Props) {
  const files = useMemo(() => filesOf(patch), [patch]);
  return (
    <div className="diff">
      {files.map((file, index) => (
        <FileDiff
          key={`${index} ${file.path}`}
          file={file}
          path={file.path || path}
          narrow={narrow}
          {...(notes && { notes })}
        />
      ))}
    </div>
  );
});

interface FileProps {
  file: DiffFile;
  path: string;
  narrow: boolean;
  notes?: LineNotes;
}

function FileDiff({ file, path, narrow, notes }: FileProps) {
  const [all, setAll] = useState(false);
  const { split, wrap } = useLook(narrow);
  const count = all ? file.lines.length : Math.min(SHOWN, file.lines.length);
  const name = exact(file.path);
  return (
    <section className="diff-file" aria-label={name ? `Changes of ${name}` : "Changes"}>
      {name && (
        <header className="mono">
          <span className="path">{name}</span> <span className="added">+{file.added}</span>{" "}
          <span className="deleted">−{file.deleted}</span>
        </header>
      )}
      <Lines key={String(split)} file={file} path={path} notes={notes} count={count} split={split} wrap={wrap} />
      {file.lines.length > count && (
        <Button kind="quiet" onClick={() => setAll(true)}>
          Show {file.lines.length - count} more lines
        </Button>
      )}
    </section>
  );
}

interface LinesProps extends Look {
  file: DiffFile;
  path: string;
  notes: LineNotes | undefined;
  /** The number of lines shown. */
  count: number;
}

function Lines({ file, path, notes, count, split, wrap }: LinesProps) {
  const hunks = useMemo(() => hunksOf(file.lines), [file]);
  const blocks = useMemo(() => blocksOf(hunks, count, split), [hunks, count, split]);
  const drawn = useGrowing(blocks.length);
  return (
    <div
      className={`diff-lines ${split ? "split" : ""} ${wrap ? "wrap" : ""}`}
      tabIndex={0}
      role="group"
      aria-label="Changed lines"
      onKeyDown={notes ? toNextLine : undefined}
    >
      {blocks.slice(0, drawn).map((block, index) => (
        <DiffBlock key={index} {...block} file={file} path={path} split={split} notes={notes} />
      ))}
    </div>
  );
}
