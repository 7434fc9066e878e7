import { describe, expect, it } from "vitest";
import { columnsOf, foldText, moreText } from "../../src/chat/folding";
import { plain } from "../../src/wording/text";

const lines = (count: number, length = 1) => Array.from({ length: count }, () => "x".repeat(length)).join("\n");

describe("a folded text", () => {
  it("is whole if a button would save nothing", () => {
    const text = lines(15);
    expect(foldText(text, 80, 12)).toEqual({ head: text, tail: "", omitted: 0, cut: false });
  });

  it("has a line of 3,000 characters in one row, and more", () => {
    const folded = foldText(`before\n${"y".repeat(3000)}\nafter`, 80, 12);
    const [, row] = folded.head.split("\n");
    expect(row).toHaveLength(80);
    expect(row?.at(-1)).toBe("…");
    expect(folded).toMatchObject({ omitted: 0, cut: true });
    expect(moreText(folded)).toBe("More");
  });

  it("counts the rows of wrapped lines, not the lines", () => {
    expect(foldText(lines(12, 70), 80, 12).omitted).toBe(0);
    expect(foldText(lines(12, 150), 80, 12).omitted).toBe(6);
    expect(foldText(lines(12, 70), 40, 12).omitted).toBe(6);
  });

  it.each([
    [100, 10],
    [101, 7],
    [30, 90],
  ])("loses none of %d lines of %d characters", (count, length) => {
    const { head, omitted, tail } = foldText(lines(count, length), 40, 10);
    expect(head.split("\n").length + omitted + tail.split("\n").length).toBe(count);
    expect(omitted).toBeGreaterThan(0);
  });

  it("has no end if its beginning is asked for", () => {
    const { head, tail, omitted } = foldText(lines(30), 80, 10, true);
    expect([head.split("\n").length, tail, omitted]).toEqual([10, "", 20]);
    expect(moreText({ omitted })).toBe("20 more lines");
  });

  it("does not count colours, and cuts a long coloured line without splitting one", () => {
    const red = (length: number) => `\x1b[31m${"r".repeat(length)}\x1b[0m`;
    expect(foldText(red(40), 40, 1)).toMatchObject({ head: red(40), cut: false });
    const cut = foldText(red(400), 40, 5).head;
    expect(cut).toBe(plain(cut));
  });
});

it("a column is never too narrow to read, nor wider than the conversation", () => {
  expect(columnsOf(0)).toBe(20);
  expect(columnsOf(390)).toBeLessThan(columnsOf(660));
  expect(columnsOf(2560)).toBe(columnsOf(1200));
});
