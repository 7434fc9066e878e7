import { describe, expect, test } from "vitest";

import { type Chunk, writing } from "../../src/panes/terminal/writing";

const chunks = (...texts: string[]): Chunk[] => texts.map((text, at) => ({ id: at + 1, text }));

describe("what is written to the terminal", () => {
  test("is all at first", () => {
    expect(writing([], chunks("a", "b"))).toEqual({ reset: false, text: "ab" });
  });

  test("is only what is new: output that grew, and commands after it", () => {
    expect(writing(chunks("a", "b"), chunks("a", "bcd", "e"))).toEqual({ reset: false, text: "cde" });
    expect(writing(chunks("a", "b"), chunks("a", "b"))).toEqual({ reset: false, text: "" });
  });

  test("is all again when something above changed or came before", () => {
    expect(writing(chunks("a", "b"), chunks("other", "b"))).toEqual({ reset: true, text: "otherb" });
    expect(writing(chunks("a", "b"), chunks("a more", "b"))).toEqual({ reset: true, text: "a moreb" });
    const older = [{ id: 0, text: "older" }, ...chunks("a")];
    expect(writing(chunks("a"), older)).toEqual({ reset: true, text: "oldera" });
    expect(writing(chunks("a", "b"), chunks("a"))).toEqual({ reset: true, text: "a" });
    expect(writing(chunks("a"), [])).toEqual({ reset: true, text: "" });
  });

  test("leaves what scrolled out of the window where it is", () => {
    expect(writing(chunks("a", "b"), chunks("a", "b", "c").slice(1))).toEqual({ reset: false, text: "c" });
  });
});
