import { expect, test } from "vitest";

import { nearest, restOf, sharedUntil } from "../../src/panes/compare/shared";
import type { SessionRow } from "../../generated/types";

const row = (id: string, head: number, parent: string | null = null, parent_event = 0): SessionRow => ({
  id,
  head,
  parent,
  parent_event,
  title: id,
  agent: "",
  model: "",
  workspace: "",
  state: "finished",
  created: "",
  updated: "",
  archived: false,
  read_only: false,
  interrupted: false,
  spent: null,
  added: null,
  deleted: null,
});

const FAMILY = [
  row("root", 100),
  row("early", 50, "root", 20),
  row("late", 90, "root", 60),
  row("grandchild", 70, "late", 65),
  row("cousin", 30, "late", 10),
];

test("a fork shares with its parent what came before it", () => {
  expect(sharedUntil(FAMILY, "root", "late")).toBe(60);
  expect(sharedUntil(FAMILY, "late", "root")).toBe(60);
});

test("two forks share what the earlier one has", () => {
  expect(sharedUntil(FAMILY, "early", "late")).toBe(20);
  expect(sharedUntil(FAMILY, "grandchild", "early")).toBe(20);
  expect(sharedUntil(FAMILY, "grandchild", "root"), "through its parent").toBe(60);
  expect(sharedUntil(FAMILY, "cousin", "root"), "forked from what was inherited").toBe(10);
  expect(sharedUntil(FAMILY, "cousin", "grandchild")).toBe(10);
});

test("strangers share nothing, a session all of itself", () => {
  expect(sharedUntil([...FAMILY, row("other", 9)], "other", "root")).toBe(0);
  expect(sharedUntil(FAMILY, "root", "root")).toBe(100);
});

test("a session is compared with its origin, or with the fork that was made last", () => {
  const [root, ...forks] = FAMILY.map((one, at) => ({ ...one, created: `2026-01-0${9 - at}` }));
  expect(nearest(forks, root)?.id, "though another one begins at a later event").toBe("early");
  expect(nearest([root!, ...forks.slice(1)], forks[0])?.id).toBe("root");
});

test("events that are too many to list are counted", () => {
  expect(restOf({ events: [{ id: 21 }, { id: 22 }], head: 90 })).toBe(68);
  expect(restOf({ events: [{ id: 90 }], head: 90 })).toBe(0);
  expect(restOf({ events: [], head: 90 })).toBe(0);
});
