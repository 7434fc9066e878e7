import { useSettled } from "../../components/useLoaded";
import { type SessionStore, useSessionPart } from "../../store";

/** Milliseconds without a change after which files are loaded again. */
const QUIET = 400;

/** A number that changes after the session's files may have changed. */
export function useFilesVersion(session: SessionStore): number {
  const newest = useSessionPart(session, ({ events, last, head }) =>
    // Each event beyond the loaded ones may be a change.
    last < head
      ? head
      : (events.findLast(({ type }) => type === "SnapshotEvent" || type.endsWith("Observation"))?.id ?? 0),
  );
  const edits = useSessionPart(session, (now) => now.edits);
  return useSettled(newest, QUIET) + edits;
}
