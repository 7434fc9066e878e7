import { expect, test, vi } from "vitest";

import { firstOf } from "../../src/panes/files/firstOf";

function stream(...parts: string[]) {
  const cancel = vi.fn();
  const waiting = parts.map((part) => new TextEncoder().encode(part));
  const made = new ReadableStream<Uint8Array>({
    pull(controller) {
      const next = waiting.shift();
      if (next) controller.enqueue(next);
      else controller.close();
    },
    cancel,
  });
  return { made, cancel };
}

test("what is short is there as a whole", async () => {
  const { made, cancel } = stream("ab", "cd");
  const { bytes, whole } = await firstOf(made, 4);
  expect([new TextDecoder().decode(bytes), whole]).toEqual(["abcd", true]);
  expect(cancel).not.toHaveBeenCalled();
});

test("of what is long only the beginning is loaded", async () => {
  const { made, cancel } = stream("ab", "cdef", "never");
  const { bytes, whole } = await firstOf(made, 5);
  expect([new TextDecoder().decode(bytes), whole]).toEqual(["abcde", false]);
  expect(cancel).toHaveBeenCalledOnce();
});
