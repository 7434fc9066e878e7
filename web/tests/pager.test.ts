import { describe, expect, it } from "vitest";
import { PIECE, Pager } from "../src/components/pager";

describe("a large output", () => {
  const text = "é€🎉\n".repeat(3 * (PIECE / 10));
  const whole = new TextEncoder().encode(text);
  const read = (offset: number, length: number) => Promise.resolve(whole.slice(offset, offset + length).buffer);

  it("is read whole, with no character cut at a piece's end", async () => {
    const pager = new Pager(whole.length, read);
    let loaded = "";
    while (pager.left > 0) loaded += await pager.next();
    expect(loaded).toBe(text);
  });

  it("continues after an error", async () => {
    let failures = 1;
    const pager = new Pager(whole.length, (offset, length) =>
      failures-- > 0 ? Promise.reject(new Error("gone")) : read(offset, length),
    );
    await expect(pager.next()).rejects.toThrow("gone");
    expect(text.startsWith(await pager.next())).toBe(true);
  });
});
