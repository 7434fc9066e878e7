/** The model calls and their totals. */

import type { CostSource, EventRecord, Of, Usage } from "../../events";

export type Call = Of<"CompletionEvent">;

export interface Total {
  model: string;
  calls: number;
  usage: Usage;
  usd: number;
  /** The number of calls with an unknown price. */
  unpriced: number;
  sources: CostSource[];
  /** Seconds. */
  latency: number;
}

/** The source of a cost in words. */
export const SOURCES: Record<CostSource, string> = {
  provider: "from the provider",
  price_list: "from the price list",
  local: "free (local)",
  scripted: "from the script",
  unknown: "price unknown",
};

export function callsOf(events: readonly EventRecord[]): Call[] {
  return events.filter((event): event is Call => event.type === "CompletionEvent");
}

/** Return the totals by model, the most expensive first. */
export function totalsOf(calls: readonly Call[]): Total[] {
  const totals = new Map<string, Total>();
  for (const call of calls) {
    const total = totals.get(call.model) ?? {
      model: call.model,
      calls: 0,
      usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
      usd: 0,
      unpriced: 0,
      sources: [],
      latency: 0,
    };
    totals.set(call.model, total);
    total.calls += 1;
    for (const kind of KINDS) total.usage[kind] += call.usage[kind];
    total.usd += call.cost ?? 0;
    total.latency += call.latency;
    if (call.cost === null) total.unpriced += 1;
    if (!total.sources.includes(call.cost_source)) total.sources.push(call.cost_source);
  }
  return [...totals.values()].sort((a, b) => b.usd - a.usd || b.calls - a.calls);
}

/** The kinds of tokens; they do not overlap. */
export const KINDS = ["input", "cache_read", "cache_write", "output"] as const satisfies (keyof Usage)[];

/** The tokens of the prompt, cached or not. */
export function promptTokens(usage: Usage): number {
  return usage.input + usage.cache_read + usage.cache_write;
}
