/** An apply in words, and what its preview means. */

import type { ApplyPreview, ApplyResult, NewApply, PullRequestProposal, UndoResult } from "../../generated/types";
import { plural } from "../wording/format";

export type Resolutions = NonNullable<NewApply["resolutions"]>;
type Planned = Pick<ApplyPreview, "workspace" | "written" | "deleted" | "conflicts" | "undoable" | "commits">;

/** The number of files that differ from the user's folder. */
export function pendingCount({ written, deleted, conflicts }: Planned): number {
  return written.length + deleted.length + conflicts.length;
}

/** Whether an apply would change a file, ask about one, or bring commits. */
export function canApply(preview: Planned): boolean {
  return pendingCount(preview) > 0 || preview.commits;
}

/** The number of files that the session changed, also of those that the user's folder has. */
export function changedCount(preview: Planned & Pick<ApplyPreview, "unchanged">): number {
  return pendingCount(preview) + preview.unchanged.length;
}

/** Where the session's changes are; "" if it has none. */
export function whereText(preview: Planned): string {
  const pending = pendingCount(preview);
  if (pending > 0)
    return `${plural(pending, "changed file")} ${pending === 1 ? "is" : "are"} not in ${preview.workspace} yet.`;
  if (preview.commits) return `The agent’s commits are not in ${preview.workspace} yet.`;
  return preview.undoable.length > 0 ? `The changes are in ${preview.workspace}.` : "";
}

/** The user's answers, and those to conflicts that have only one. */
export function allAnswers({ conflicts }: Planned, chosen: Resolutions): Resolutions {
  const only = conflicts.filter((conflict) => !conflict.can_take).map(({ path }) => [path, "leave"] as const);
  return { ...chosen, ...Object.fromEntries(only) };
}

/** What the button does, and whether it can: every conflict has an answer, and a file would change or commits come. */
export function applyButton(preview: Planned, answers: Resolutions): { label: string; enabled: boolean } {
  const paths = preview.conflicts.map(({ path }) => path);
  const taken = paths.filter((path) => answers[path] === "take").length;
  const files = preview.written.length + preview.deleted.length + taken;
  const decided = paths.every((path) => answers[path] !== undefined);
  const label = files > 0 ? `Apply ${plural(files, "file")}` : preview.commits ? "Bring the commits" : "Apply";
  return { label, enabled: decided && (files > 0 || preview.commits) };
}

export function appliedText({ workspace, written, deleted }: ApplyResult): string {
  return `${plural(written.length + deleted.length, "file")} changed in ${workspace}.`;
}

export function undoneText({ workspace, restored, deleted }: UndoResult): string {
  const files = restored.length + deleted.length;
  return `Undone: ${plural(files, "file")} in ${workspace} ${files === 1 ? "is" : "are"} as before.`;
}

/** The permissions that a token needs, and the other place for one. */
export function tokenAbout({ forge, variable }: Pick<PullRequestProposal, "forge" | "variable">): string {
  const scope =
    forge === "github"
      ? "A token with the scope repo, or a fine-grained one that may write contents and pull requests."
      : "A token with the scope api, of an account with the role Developer.";
  return variable ? `${scope} The server also takes the token of its environment variable ${variable}.` : scope;
}
