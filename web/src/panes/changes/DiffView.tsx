import { Fragment, type ReactNode, useMemo, useState } from "react";

import { Diff } from "../../components/diff/Diff";
import type { LineNotes } from "../../components/diff/DiffBlock";
import { useGrowing } from "../../components/diff/growing";
import type { Diff as DiffAnswer, FileChange } from "../../../generated/types";
import { exact } from "../../wording/text";
import { Empty } from "../common/Empty";
import { patches } from "./patches";

/** The most files shown at once; of more, the user chooses one. */
const FEW = 20;

interface Props {
  diff: DiffAnswer;
  empty: string;
  /** There is no room for a split view. */
  narrow?: boolean;
  notes?: LineNotes;
  /** What stands above a file whose hunks are not rejected one by one. */
  besideFile?: (path: string) => ReactNode;
}

/** A list of changed files beside the changes of all of them or of the chosen one. */
export function DiffView({ diff, empty, narrow = false, notes, besideFile }: Props) {
  const [chosen, setChosen] = useState<string | null>(null);
  const parts = useMemo(() => patches(diff.files, diff.patch), [diff]);
  const drawn = useGrowing(Math.min(diff.files.length, FEW));
  if (diff.files.length === 0) return <Empty>{empty}</Empty>;
  const only = diff.files.some((file) => file.path === chosen) ? chosen : null;
  const shown = diff.files.flatMap((file, at) =>
    (only === null ? diff.files.length <= FEW : file.path === only) ? [{ file, patch: parts[at] ?? "" }] : [],
  );
  return (
    <div className="pane-split">
      <div className="pane-side">
        <ul className="list" aria-label="Changed files">
          <li>
            <FileButton
              name={`All ${diff.files.length}`}
              files={diff.files}
              chosen={only === null}
              onClick={() => setChosen(null)}
            />
          </li>
          {diff.files.map((file) => (
            <li key={file.path}>
              <FileButton
                name={exact(file.path)}
                files={[file]}
                chosen={file.path === only}
                onClick={() => setChosen(file.path)}
              />
            </li>
          ))}
        </ul>
      </div>
      <div className="pane-scroll" tabIndex={0} role="region" aria-label="Changes">
        {shown.length === 0 && <Empty>Too many files to show at once: choose one.</Empty>}
        {shown.slice(0, drawn).map(({ file, patch }) => (
          <Fragment key={file.path}>
            {(file.kind !== "modified" || file.binary) && besideFile?.(file.path)}
            <FilePatch file={file} patch={patch} narrow={narrow} {...(notes && { notes })} />
          </Fragment>
        ))}
      </div>
    </div>
  );
}

interface PatchProps {
  file: FileChange;
  patch: string;
  narrow: boolean;
  notes?: LineNotes;
}

function FilePatch({ file, patch, narrow, notes }: PatchProps) {
  if (file.binary) return <p className="mono">{patch}</p>;
  if (notes === undefined) return <Diff patch={patch} narrow={narrow} />;
  const { write, below } = notes;
  // A hunk of a new, deleted or replaced file is the whole file.
  return <Diff patch={patch} narrow={narrow} notes={file.kind === "modified" ? notes : { write, below }} />;
}

function FileButton({
  name,
  files,
  chosen,
  onClick,
}: {
  name: string;
  files: readonly FileChange[];
  chosen: boolean;
  onClick: () => void;
}) {
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const deleted = files.reduce((sum, file) => sum + file.deleted, 0);
  return (
    <button
      type="button"
      className="row-button pane-choice changes-file"
      aria-pressed={chosen}
      title={name}
      onClick={onClick}
    >
      <span className="grow cut">{name}</span>
      {files.every((file) => file.binary) ? (
        <span className="faint">binary</span>
      ) : (
        <>
          <span className="added">
            +{added}
            <span className="hidden"> lines added</span>
          </span>
          <span className="deleted">
            −{deleted}
            <span className="hidden"> lines deleted</span>
          </span>
        </>
      )}
    </button>
  );
}
