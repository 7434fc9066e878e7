import { describe, expect, it } from "vitest";
import { PIECE, Pager } from "../../src/chat/pager";

describe("a large output", () => {
  const text = "é€🎉\n".repeat(3 * (PIECE / 10));
  const whole = new TextEncoder().encode(text);
  const read = (offset: number, length: number) => Promise.resolve(whole.slice(offset, offset + length).buffer);

  it("is read whole, with no character cut at a piece's end", async () => {
    const pager = new Pager(whole.length, read);
    let found = "";
    while (pager.left > 0) found += await pager.next();
    expect(found).toBe(text);
  });

  it("goes on where it was after an error", async () => {
    let failures = 1;
    const pager = new Pager(whole.length, (offset, length) =>
      failures-- > 0 ? Promise.reject(new Error("gone")) : read(offset, length),
    );
    await expect(pager.next()).rejects.toThrow("gone");
    expect(text.startsWith(await pager.next())).toBe(true);
  });
});
