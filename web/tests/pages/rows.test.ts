import { expect, test } from "vitest";

import type { SessionRow } from "../../generated/types";
import type { AgentState } from "../../src/events";
import { hasAllWaiting, withPage, withRow } from "../../src/pages/rows";

function row(number: number, state: AgentState = "finished", archived = false): SessionRow {
  return {
    id: `s${number}`,
    created: `2026-01-0${number}T00:00:00Z`,
    state,
    archived,
    interrupted: false,
  } as SessionRow;
}

const ids = (rows: readonly SessionRow[]) => rows.map(({ id }) => id).join(" ");
const rows = [row(2, "paused"), row(9), row(7), row(5)];

test("a session that begins to need the user becomes the first of the list, and the other way round", () => {
  expect(ids(withRow(rows, row(7, "awaiting_user_input"), true))).toBe("s7 s2 s9 s5");
  expect(ids(withRow(rows, row(2, "running"), false))).toBe("s9 s7 s5 s2");
});

test("a session whose place is on a page that is not loaded is left to that page", () => {
  expect(ids(withRow(rows, row(2, "running"), true))).toBe("s9 s7 s5");
  expect(ids(withRow(rows, row(3, "running"), true))).toBe("s2 s9 s7 s5");
  expect(ids(withRow(rows, row(3, "running"), false))).toBe("s2 s9 s7 s5 s3");
  expect(ids(withRow(rows, row(3, "error"), true))).toBe("s3 s2 s9 s7 s5");
  expect(ids(withRow(rows, row(8), true))).toBe("s2 s9 s8 s7 s5");
});

test("the last session of the list stays in it when it has changed, unless its place is further down", () => {
  expect(ids(withRow(rows, { ...row(5), title: "renamed" }, true))).toBe("s2 s9 s7 s5");
  expect(ids(withRow(rows, row(5, "running"), true))).toBe("s2 s9 s7 s5");
  expect(ids(withRow([row(5, "paused"), row(2, "paused")], row(2, "running"), true))).toBe("s5");
});

test("a session that was interrupted needs the user too", () => {
  expect(ids(withRow(rows, { ...row(5, "running"), interrupted: true }, true))).toBe("s5 s2 s9 s7");
});

test("an archived session leaves the list", () => {
  expect(ids(withRow(rows, row(9, "finished", true), true))).toBe("s2 s7 s5");
});

test("a session that is on two pages, as it changed between them, is listed once, as it is now", () => {
  expect(ids(withPage(rows, [row(3), row(2), row(1)]))).toBe("s9 s7 s5 s3 s2 s1");
});

test("all sessions that need the user are loaded once one that does not is", () => {
  expect(hasAllWaiting(rows, true)).toBe(true);
  expect(hasAllWaiting(rows.slice(0, 1), true)).toBe(false);
  expect(hasAllWaiting(rows.slice(0, 1), false)).toBe(true);
});
