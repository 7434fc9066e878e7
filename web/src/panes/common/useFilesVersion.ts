import { type SessionStore, type Snapshot, useSessionPart } from "../../store";
import { useSettled } from "./useLoaded";

/** Milliseconds without a change after which files are looked at again. */
const QUIET = 400;

/** A number that is another whenever the session's files may be others; it waits for a quiet moment. */
export function useFilesVersion(session: SessionStore): number {
  return useSettled(useSessionPart(session, newest), QUIET);
}

function newest({ events }: Snapshot): number {
  const found = events.findLast((event) => event.type === "SnapshotEvent" || event.type.endsWith("Observation"));
  return found?.id ?? 0;
}
