import { memo, useMemo, useState } from "react";
import { Button } from "./Button";
import { filesOf, type DiffFile } from "./patch";

const SIGN = { same: " ", added: "+", deleted: "-", hunk: "", note: "" };
/** The most lines of a file shown at first. */
const SHOWN = 400;

/** A patch, file by file. */
export const Diff = memo(function Diff({ patch }: { patch: string }) {
  const files = useMemo(() => filesOf(patch), [patch]);
  return (
    <div className="diff">
      {files.map((file, index) => (
        <FileDiff key={`${index} ${file.path}`} file={file} />
      ))}
    </div>
  );
});

function FileDiff({ file }: { file: DiffFile }) {
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
      <div className="diff-lines" tabIndex={0} role="group" aria-label="Changed lines">
        {lines.map((line, index) => (
          <div key={index} className={`line ${line.kind}`}>
            <span className="number">{line.old ?? ""}</span>
            <span className="number">{line.new ?? ""}</span>
            <span className="text">
              {SIGN[line.kind]}
              {line.text}
            </span>
          </div>
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
