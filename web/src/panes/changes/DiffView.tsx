import { useMemo, useState } from "react";

import { Diff } from "../../components/Diff";
import type { Diff as DiffAnswer, FileChange } from "../../../generated/types";
import { Empty } from "../common/Notice";
import { patches } from "./patches";

/** Files whose changes are all shown at once; of more, one is chosen. */
const FEW = 20;

/** What changed: a list of files, and the changes of all or of the chosen one. */
export function DiffView({ diff, nothing }: { diff: DiffAnswer; nothing: string }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const parts = useMemo(() => patches(diff.files, diff.patch), [diff]);
  if (diff.files.length === 0) return <Empty>{nothing}</Empty>;
  const only = diff.files.some((file) => file.path === chosen) ? chosen : null;
  const shown = diff.files.flatMap((file, at) =>
    (only === null ? diff.files.length <= FEW : file.path === only) ? [{ file, patch: parts[at] ?? "" }] : [],
  );
  return (
    <div className="pane-split">
      <div className="pane-side">
        <ul className="changes-files" aria-label="Changed files">
          <li>
            <Choice
              name={`All ${diff.files.length}`}
              files={diff.files}
              pressed={only === null}
              choose={() => {
                setChosen(null);
              }}
            />
          </li>
          {diff.files.map((file) => (
            <li key={file.path}>
              <Choice
                name={file.path}
                files={[file]}
                pressed={file.path === only}
                choose={() => {
                  setChosen(file.path);
                }}
              />
            </li>
          ))}
        </ul>
      </div>
      <div className="pane-scroll changes-patches" tabIndex={0} role="region" aria-label="Changes">
        {shown.length === 0 && <Empty>Choose a file: they are too many to show at once.</Empty>}
        {shown.map(({ file, patch }) => (
          <Shown key={file.path} file={file} patch={patch} />
        ))}
      </div>
    </div>
  );
}

function Shown({ file, patch }: { file: FileChange; patch: string }) {
  return file.binary ? <p className="changes-binary">{patch}</p> : <Diff patch={patch} />;
}

function Choice({
  name,
  files,
  pressed,
  choose,
}: {
  name: string;
  files: readonly FileChange[];
  pressed: boolean;
  choose: () => void;
}) {
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const deleted = files.reduce((sum, file) => sum + file.deleted, 0);
  return (
    <button type="button" className="changes-choice" aria-pressed={pressed} title={name} onClick={choose}>
      <span className="changes-name">{name}</span>
      {files.every((file) => file.binary) ? (
        <span className="faint">binary</span>
      ) : (
        <>
          <span className="changes-added">
            +{added}
            <span className="hidden"> lines added</span>
          </span>
          <span className="changes-deleted">
            −{deleted}
            <span className="hidden"> lines deleted</span>
          </span>
        </>
      )}
    </button>
  );
}
