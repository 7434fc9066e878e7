import { describe, expect, test } from "vitest";

import { type Chunk, updateOf } from "../../src/panes/terminal/updates";

const chunks = (...texts: string[]): Chunk[] => texts.map((text, at) => ({ id: at + 1, text }));

describe("what is written to the terminal", () => {
  test("is all at first", () => {
    expect(updateOf([], chunks("a", "b"))).toEqual({ reset: false, text: "ab" });
  });

  test("is only what is new: output that grew, and commands after it", () => {
    expect(updateOf(chunks("a", "b"), chunks("a", "bcd", "e"))).toEqual({ reset: false, text: "cde" });
    expect(updateOf(chunks("a", "b"), chunks("a", "b"))).toEqual({ reset: false, text: "" });
  });

  test("is all again when something above changed or came before", () => {
    expect(updateOf(chunks("a", "b"), chunks("other", "b"))).toEqual({ reset: true, text: "otherb" });
    expect(updateOf(chunks("a", "b"), chunks("a more", "b"))).toEqual({ reset: true, text: "a moreb" });
    const older = [{ id: 0, text: "older" }, ...chunks("a")];
    expect(updateOf(chunks("a"), older)).toEqual({ reset: true, text: "oldera" });
    expect(updateOf(chunks("a", "b"), chunks("a"))).toEqual({ reset: true, text: "a" });
    expect(updateOf(chunks("a"), [])).toEqual({ reset: true, text: "" });
  });

  test("is what follows, when long output of a running command has lost its beginning", () => {
    const live = (text: string): Chunk[] => [{ id: 1, text: `$ make\n${text}`, live: true }];
    expect(updateOf(live("12345678"), live("345678910"))).toEqual({ reset: true, text: "$ make\n345678910" });
    const long = Array.from({ length: 1000 }, (_, line) => `line ${line}`).join("\n");
    expect(updateOf(live(long), live(`${long.slice(4000)}\nnext`))).toEqual({ reset: false, text: "\nnext" });
    const ended = [{ id: 1, text: `$ make\n${long.slice(4000)}` }];
    expect(updateOf(live(long), ended)).toEqual({ reset: true, text: ended[0]?.text });
  });

  test("leaves what scrolled out of the window where it is", () => {
    expect(updateOf(chunks("a", "b"), chunks("a", "b", "c").slice(1))).toEqual({ reset: false, text: "c" });
  });
});
