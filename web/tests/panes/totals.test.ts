import { expect, test } from "vitest";

import { type Call, callsOf, promptTokens, totalsOf } from "../../src/panes/cost/totals";

const call = (id: number, model: string, cost: number | null, input: number, cache_read = 0): Call => ({
  type: "CompletionEvent",
  id,
  schema: 1,
  timestamp: "2026-01-01T00:00:00Z",
  source: "environment",
  cause: null,
  subtask: 0,
  model,
  response: {},
  usage: { input, output: 1, cache_read, cache_write: 0 },
  cost,
  cost_source: cost === null ? "unknown" : "provider",
  latency: 0.5,
  first_token: null,
  finish_reason: "stop",
  failed_attempts: [],
});

test("calls are summed by model, the dearest first, and what has no price is counted", () => {
  const events = [call(1, "small", 0.1, 10), call(2, "large", 1, 100, 900), call(3, "small", null, 20)];
  const [large, small] = totalsOf(callsOf(events));
  expect(large).toMatchObject({ model: "large", calls: 1, usd: 1, unpriced: 0, sources: ["provider"] });
  expect(small).toMatchObject({ model: "small", calls: 2, usd: 0.1, unpriced: 1, latency: 1 });
  expect(small?.sources).toEqual(["provider", "unknown"]);
  expect(small?.usage).toEqual({ input: 30, output: 2, cache_read: 0, cache_write: 0 });
  expect(large && promptTokens(large.usage)).toBe(1000);
});

test("no calls, no totals", () => {
  expect(totalsOf(callsOf([]))).toEqual([]);
});
