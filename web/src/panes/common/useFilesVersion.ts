import type { EventRecord } from "../../events";
import { useSettled } from "./useLoaded";

/** Milliseconds without a change after which files are looked at again. */
const QUIET = 400;

/** A number that is another whenever the session's files may be others; it waits for a quiet moment. */
export function useFilesVersion(events: readonly EventRecord[]): number {
  const newest = events.findLast((event) => event.type === "SnapshotEvent" || event.type.endsWith("Observation"));
  return useSettled(newest?.id ?? 0, QUIET);
}
