/** What was paid for, by model and by call. */

import type { CostSource, EventRecord, Of, Usage } from "../../events";

export type Call = Of<"CompletionEvent">;

export interface Total {
  model: string;
  calls: number;
  usage: Usage;
  usd: number;
  /** Calls whose price is not known. */
  unpriced: number;
  sources: CostSource[];
  /** Seconds that the model took. */
  latency: number;
}

/** Where a figure comes from, in words. */
export const SOURCES: Record<CostSource, string> = {
  provider: "as the provider said",
  price_list: "by the price list",
  local: "a local model is free",
  scripted: "as the script says",
  unknown: "price unknown",
};

/** The calls among events. */
export function calls(events: readonly EventRecord[]): Call[] {
  return events.filter((event): event is Call => event.type === "CompletionEvent");
}

/** The calls' sums by model, the dearest first. */
export function totals(made: readonly Call[]): Total[] {
  const found = new Map<string, Total>();
  for (const call of made) {
    const total = found.get(call.model) ?? {
      model: call.model,
      calls: 0,
      usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
      usd: 0,
      unpriced: 0,
      sources: [],
      latency: 0,
    };
    found.set(call.model, total);
    total.calls += 1;
    for (const kind of KINDS) total.usage[kind] += call.usage[kind];
    total.usd += call.cost ?? 0;
    total.latency += call.latency;
    if (call.cost === null) total.unpriced += 1;
    if (!total.sources.includes(call.cost_source)) total.sources.push(call.cost_source);
  }
  return [...found.values()].sort((one, other) => other.usd - one.usd || other.calls - one.calls);
}

/** The classes of tokens, which do not overlap. */
export const KINDS = ["input", "cache_read", "cache_write", "output"] as const satisfies (keyof Usage)[];

/** Tokens of the prompt, however they were read. */
export function prompt(usage: Usage): number {
  return usage.input + usage.cache_read + usage.cache_write;
}
