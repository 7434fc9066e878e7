import { expect, test } from "vitest";

import type { Outline as Page } from "../../generated/types";
import { filtered, Outline, positionOf, snapped } from "../../src/panes/timeline/outline";

/** The outline of events, each its type, its cause, and whether it failed. */
function page(first: number, ...events: [type: string, cause?: number | null, failed?: boolean][]): Page {
  const names = [...new Set(events.map(([type]) => type))];
  return {
    first,
    names,
    types: events.map(([type]) => names.indexOf(type)),
    causes: events.map(([, cause]) => cause ?? null),
    failed: events.flatMap(([, , failed], index) => (failed ? [first + index] : [])),
    head: 100,
  };
}

function outline(...pages: Page[]): Outline {
  const outline = new Outline();
  for (const one of pages) outline.add(one);
  return outline;
}

const BEGIN = page(1, ["MessageAction"], ["StepStarted"], ["CmdRunAction"], ["SnapshotEvent"]);
const END = page(5, ["CmdOutputObservation", 3, true], ["AgentStateChangedObservation", 3], ["AgentFinishAction"]);

test("an action and its result are one entry, also over the border of pages", () => {
  const { entries, last } = outline(BEGIN, END);
  expect(entries.map(({ id, end }) => [id, end])).toEqual([
    [1, 1],
    [2, 2],
    [3, 5],
    [4, 4],
    [6, 6],
    [7, 7],
  ]);
  expect(last).toBe(7);
});

test("a page that comes twice, or too early, adds nothing", () => {
  expect(outline(BEGIN, BEGIN, page(9, ["StepStarted"])).entries).toEqual(outline(BEGIN).entries);
});

test("entries are filtered", () => {
  const { entries } = outline(BEGIN, END);
  const ids = (filter: Parameters<typeof filtered>[1]) => filtered(entries, filter).map(({ id }) => id);
  expect(ids("all")).toHaveLength(6);
  expect(ids("conversation")).toEqual([1, 7]);
  expect(ids("actions")).toEqual([3, 7]);
  expect(ids("failures")).toEqual([3]);
});

test("an event has the entry that it is part of, or the one before", () => {
  const { entries } = outline(BEGIN, END);
  const id = (event: number) => entries[positionOf(entries, event)]?.id;
  expect([1, 3, 4, 5, 6, 99].map(id)).toEqual([1, 3, 4, 3, 6, 7]);
  expect(positionOf(filtered(entries, "failures"), 2)).toBe(-1);
});

test("the slider stops at the ends of entries, and does not stick to one on the way back", () => {
  const { entries } = outline(BEGIN, END);
  expect(snapped(entries, 3, 1)).toBe(5);
  expect(snapped(entries, 3, 5)).toBe(2);
  expect(snapped(entries, 1, 7)).toBe(1);
  expect(snapped(filtered(entries, "actions"), 1, 7)).toBe(5);
  expect(snapped([], 3, 1)).toBeNull();
});
