import { expect, test } from "vitest";

import { matching } from "../src/evaluation/useRun";
import { evaluationPath, pageOf } from "../src/router";
import type { RolloutRow } from "../generated/types";

const row = (id: string, status: RolloutRow["status"], group = ""): RolloutRow => ({
  id,
  status,
  group,
  name: id,
  session: id,
  trial: 1,
  outcome: "",
  why: "",
  score: null,
  expected: "",
  answer: "",
  steps: 0,
  tokens: 0,
  cost: 0,
  seconds: 0,
});

const ROWS = [row("django-1", "solved", "web"), row("numpy-1", "unsolved"), row("numpy-2", "running")];

test("rollouts are found by their id, their group and their status", () => {
  const found = (q: string, status = "") => matching(ROWS, q, status).map(({ id }) => id);
  expect(found("")).toEqual(["django-1", "numpy-1", "numpy-2"]);
  expect(found(" NUMPY ")).toEqual(["numpy-1", "numpy-2"]);
  expect(found("web")).toEqual(["django-1"]);
  expect(found("numpy", "running")).toEqual(["numpy-2"]);
});

test("the address keeps the filters", () => {
  const path = new URL(evaluationPath("a & b", "failed"), "http://localhost");
  expect(pageOf(path)).toEqual({ name: "evaluation", q: "a & b", status: "failed" });
  expect(evaluationPath()).toBe("/eval");
});
