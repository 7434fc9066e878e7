import { expect, test } from "vitest";

import { age, bytes, costText, count, duration, money, plural, share } from "../src/wording/format";
import { firstLine } from "../src/wording/text";

test("numbers are short and precise enough", () => {
  expect([0, 999, 1000, 12_345, 999_999, 3_200_000].map(bytes)).toEqual([
    "0 B",
    "999 B",
    "1.0 kB",
    "12 kB",
    "1.0 MB",
    "3.2 MB",
  ]);
  expect([7, 1234, 1_234_567].map(count)).toEqual(["7", "1,234", "1,234,567"]);
  expect([0, 0.00001, 0.01234, 12.345].map(money)).toEqual(["$0", "< $0.0001", "$0.0123", "$12.35"]);
  expect([0.42, 12.3, 59.7, 200, 7260].map(duration)).toEqual([
    "0.4 s",
    "12 s",
    "1 min 0 s",
    "3 min 20 s",
    "2 h 1 min",
  ]);
  expect([plural(1, "step"), plural(2, "step")]).toEqual(["1 step", "2 steps"]);
  expect([share(0, 0), share(1, 3)]).toEqual(["0 %", "33 %"]);
});

test("calls of unknown price are not free", () => {
  const costs = [
    { usd: 0, unpriced: 0 },
    { usd: 0, unpriced: 3 },
    { usd: 1.5, unpriced: 3 },
  ];
  expect(costs.map(costText)).toEqual(["$0", "cost unknown", "at least $1.50"]);
});

test("a line is the first of a text, cut when it is long", () => {
  expect(firstLine("\n one\ntwo")).toBe("one");
  expect(firstLine("abcdef", 4)).toBe("abc…");
  expect(firstLine("\x1b[32mpassed\x1b[0m")).toBe("passed");
});

test("an age is in its largest unit", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  const ages = ["2026-01-01T23:59:50Z", "2026-01-01T23:58:00Z", "2026-01-01T00:00:00Z"].map((time) => age(time, now));
  expect(ages).toEqual(["just now", "2 minutes ago", "yesterday"]);
});
