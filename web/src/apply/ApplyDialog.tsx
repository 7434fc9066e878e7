/** Shows what an apply would change, asks about conflicts, and applies. */

import { useState } from "react";
import type { ApplyConflict, ApplyPreview, ApplyResult } from "../../generated/types";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Diff } from "../components/diff/Diff";
import { Problem } from "../components/Problem";
import { RadioGroup } from "../components/RadioGroup";
import { useAsync } from "../components/useAsync";
import type { SessionStore } from "../store";
import { plural } from "../wording/format";
import { capital } from "../wording/text";
import { useApplyPreview } from "./useApplyPreview";
import { allAnswers, appliedText, applyButton, type Resolutions } from "./wording";

export function ApplyDialog({ store, onClose }: { store: SessionStore; onClose: () => void }) {
  const { value: preview, problem: unknown } = useApplyPreview(store);
  const [chosen, setChosen] = useState<Resolutions>({});
  const [result, setResult] = useState<ApplyResult | null>(null);
  const { busy, problem, run } = useAsync();
  if (result !== null) return <Outcome result={result} onClose={onClose} />;
  const answers = preview ? allAnswers(preview, chosen) : {};
  const { label, enabled } = preview ? applyButton(preview, answers) : { label: "Apply", enabled: false };
  const apply = () =>
    run(async () => {
      setResult(await store.api.apply.run(answers));
      store.folderChanged();
    });
  return (
    <Dialog title="Apply the changes" onClose={onClose} onSubmit={apply} wide>
      {preview && <Plan preview={preview} answers={answers} onAnswer={setChosen} />}
      <Problem text={problem || unknown} />
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" disabled={busy || !enabled}>
          {label}
        </Button>
      </footer>
    </Dialog>
  );
}

interface PlanProps {
  preview: ApplyPreview;
  answers: Resolutions;
  onAnswer: (answers: Resolutions) => void;
}

function Plan({ preview, answers, onAnswer }: PlanProps) {
  const { workspace, written, deleted, unchanged, warnings, conflicts, commits } = preview;
  return (
    <>
      {written.length + deleted.length > 0 && (
        <>
          <p>
            In <span className="mono apply-path">{workspace}</span>, merged with your own edits:
          </p>
          <ul className="list apply-files" aria-label="Files that change" tabIndex={0}>
            {written.map((path) => (
              <FileLine key={path} word="write" path={path} />
            ))}
            {deleted.map((path) => (
              <FileLine key={path} word="delete" path={path} />
            ))}
          </ul>
        </>
      )}
      {written.length + deleted.length + conflicts.length === 0 && (
        <p>
          {commits ? "No file to change" : "Nothing to apply"}: <span className="mono apply-path">{workspace}</span> has
          all changes.
        </p>
      )}
      {commits && <p>The agent’s commits come as a branch, which is not checked out.</p>}
      {unchanged.length > 0 && (
        <p className="faint">
          {plural(unchanged.length, "file")} {unchanged.length === 1 ? "is" : "are"} the same there already.
        </p>
      )}
      {warnings.map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
      {conflicts.length > 0 && (
        <section className="stack" aria-label="Conflicts">
          <h3>{plural(conflicts.length, "conflict")}</h3>
          {conflicts.map((conflict) => (
            <Conflict
              key={conflict.path}
              conflict={conflict}
              answer={answers[conflict.path]}
              onAnswer={(answer) => onAnswer({ ...answers, [conflict.path]: answer })}
            />
          ))}
        </section>
      )}
    </>
  );
}

interface ConflictProps {
  conflict: ApplyConflict;
  answer: Resolutions[string] | undefined;
  onAnswer: (answer: Resolutions[string]) => void;
}

function Conflict({ conflict: { path, reason, can_take, patch }, answer, onAnswer }: ConflictProps) {
  return (
    <section className="apply-conflict" aria-label={`Conflict in ${path}`}>
      <strong className="mono apply-path">{path}</strong>
      {can_take ? (
        <>
          <p>{capital(reason)}.</p>
          <RadioGroup
            label={`Version of ${path}`}
            options={{ leave: "Keep mine", take: "Take the agent’s" }}
            value={answer}
            onChange={onAnswer}
          />
          <details>
            <summary>From yours to the agent’s</summary>
            {patch.startsWith("diff ") ? <Diff patch={patch} /> : <p className="mono">{patch}</p>}
          </details>
        </>
      ) : (
        <p>It cannot be written: {reason}. Yours stays as it is.</p>
      )}
    </section>
  );
}

function Outcome({ result, onClose }: { result: ApplyResult; onClose: () => void }) {
  return (
    <Dialog title="Applied" onClose={onClose} onSubmit={onClose} wide>
      <p role="status">{appliedText(result)}</p>
      {result.branch !== null && (
        <p>
          The agent’s commits are on the branch <code>{result.branch}</code>.
        </p>
      )}
      {result.warnings.map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
      <footer>
        <Button type="submit" kind="primary">
          Close
        </Button>
      </footer>
    </Dialog>
  );
}

function FileLine({ word, path }: { word: "write" | "delete"; path: string }) {
  return (
    <li>
      <span className={word === "delete" ? "deleted" : "added"}>{word}</span> <span className="mono">{path}</span>
    </li>
  );
}
