/** The rows of the conversation: its entries, with consecutive steps as groups, then the replies being written. */

import type { Entry, StepEntry } from "./entries";

interface LiveRow {
  kind: "live";
  key: string;
  subtask: number;
  text: string;
}
export interface GroupRow {
  kind: "group";
  key: string;
  id: number;
  depth: number;
  steps: StepEntry[];
  open: boolean;
}
/** An entry; `grouped` if it is shown below the row of its group. */
type EntryRow = Entry & { grouped?: boolean };
export type Row = EntryRow | GroupRow | LiveRow;

/** The fewest finished steps of a group. */
const FEWEST = 3;
/** Events from whose ids a group takes its steps, so that a long session stays long enough to scroll through. */
const SPAN = 40;

/** `opened` has the ids of steps whose groups are open. The JSON that constrained models write gets no row. */
export function rowsOf(
  entries: readonly Entry[],
  texts: ReadonlyMap<number, string>,
  opened: ReadonlySet<number> = new Set(),
): Row[] {
  const rows: Row[] = [];
  let run: Entry[] = [];
  for (const entry of entries) {
    const first = run[0];
    if (first !== undefined && !continues(first, entry)) {
      rows.push(...rowsOfRun(run, opened));
      run = [];
    }
    if (isGrouped(entry) || (run.length > 0 && isMachinery(entry))) run.push(entry);
    else rows.push(entry);
  }
  rows.push(...rowsOfRun(run, opened, true));
  for (const [subtask, text] of texts) {
    if (text.trim() && !text.trimStart().startsWith("{"))
      rows.push({ kind: "live", key: `live-${subtask}`, subtask, text });
  }
  return rows;
}

/** Return the row of an event, or the next row if it has none; null if none follows. */
export function rowOf(rows: readonly Row[], event: number): Row | null {
  const last = (row: GroupRow) => row.steps.at(-1)?.id ?? row.id;
  return (
    rows.find((row) => {
      if (row.kind === "live" || row.kind === "heading") return false;
      return (row.kind === "group" && !row.open ? last(row) : row.id) >= event;
    }) ?? null
  );
}

function continues(first: Entry, entry: Entry): boolean {
  return (
    (isGrouped(entry) || isMachinery(entry)) &&
    entry.subtask === first.subtask &&
    Math.floor(entry.id / SPAN) === Math.floor(first.id / SPAN)
  );
}

/** A delegation stands by itself, above the steps of its delegate. */
function isGrouped(entry: Entry): entry is StepEntry {
  if (entry.kind !== "step" || entry.observation === null) return false;
  return entry.action.type !== "AgentDelegateAction" && entry.action.type !== "ForkAction";
}

function isMachinery(entry: Entry): boolean {
  return entry.kind === "notice" && entry.machinery;
}

/** The key stays when older events are loaded, or newer ones come: a group may grow at its start, the newest at its end. */
function rowsOfRun(run: Entry[], opened: ReadonlySet<number>, newest = false): Row[] {
  const steps = run.filter(isGrouped);
  const first = steps[0];
  const last = steps.at(-1);
  if (first === undefined || last === undefined || steps.length < FEWEST) return run;
  const open = steps.some(({ id }) => opened.has(id));
  const group: GroupRow = {
    kind: "group",
    key: `group-${(newest ? first : last).id}`,
    id: first.id,
    depth: first.depth,
    steps,
    open,
  };
  return open ? [group, ...run.map((entry) => ({ ...entry, grouped: true }))] : [group];
}
