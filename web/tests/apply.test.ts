import { describe, expect, it } from "vitest";
import { allAnswers, appliedText, applyButton, canApply, undoneText, whereText } from "../src/apply/wording";

const NOTHING = { workspace: "/w", written: [], deleted: [], conflicts: [], undoable: [], commits: false };
const conflict = (path: string, can_take = true) => ({ path, reason: "both changed it", can_take, patch: "" });

describe("where the changes are", () => {
  it.each([
    [{}, ""],
    [{ written: ["a"] }, "1 changed file is not in /w yet."],
    [{ written: ["a"], deleted: ["b"], conflicts: [conflict("c")] }, "3 changed files are not in /w yet."],
    [{ undoable: ["a"] }, "The changes are in /w."],
    [{ undoable: ["a"], commits: true }, "The agent’s commits are not in /w yet."],
    [{ undoable: ["a"], conflicts: [conflict("c")] }, "1 changed file is not in /w yet."],
  ])("%j is told as %j", (part, text) => {
    expect(whereText({ ...NOTHING, ...part })).toBe(text);
    expect(canApply({ ...NOTHING, ...part })).toBe(text.includes("not in"));
  });
});

describe("the button", () => {
  const button = (part: object, chosen = {}) => {
    const preview = { ...NOTHING, ...part };
    return applyButton(preview, allAnswers(preview, chosen));
  };

  it("counts the files that change, and waits for an answer to every conflict", () => {
    expect(button({ written: ["a"], deleted: ["b"] })).toEqual({ label: "Apply 2 files", enabled: true });
    expect(button({ written: ["a"], conflicts: [conflict("c")] })).toEqual({ label: "Apply 1 file", enabled: false });
    expect(button({ conflicts: [conflict("c")] }, { c: "take" })).toEqual({ label: "Apply 1 file", enabled: true });
    expect(button({ conflicts: [conflict("c")] }, { c: "leave" })).toEqual({ label: "Apply", enabled: false });
    expect(button({})).toEqual({ label: "Apply", enabled: false });
    expect(button({ commits: true })).toEqual({ label: "Bring the commits", enabled: true });
  });

  it("needs no answer where only one is possible", () => {
    const blocked = { written: ["a"], conflicts: [conflict("c", false)] };
    expect(button(blocked)).toEqual({ label: "Apply 1 file", enabled: true });
    expect(allAnswers({ ...NOTHING, ...blocked }, {})).toEqual({ c: "leave" });
  });
});

it("says what was applied and undone", () => {
  const result = { workspace: "/w", written: ["a"], deleted: ["b"], unchanged: [], warnings: [], branch: null };
  expect(appliedText(result)).toBe("2 files changed in /w.");
  expect(undoneText({ workspace: "/w", restored: ["b"], deleted: [] })).toBe("Undone: 1 file in /w is as before.");
});
