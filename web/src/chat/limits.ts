/** Limits as the user writes them into the fields of a form. */

import type { Limits, Usage } from "../events";

export type LimitName = keyof Limits;
export const LIMITS: { name: LimitName; label: string; unit: string }[] = [
  { name: "iterations", label: "Steps", unit: "steps" },
  { name: "cost", label: "Cost", unit: "USD" },
  { name: "tokens", label: "Tokens", unit: "tokens" },
  { name: "time", label: "Time", unit: "seconds" },
];

export interface Spent {
  iterations: number;
  usage: Usage;
  cost: { usd: number };
  time: number;
}

export function spent(info: Spent): Record<LimitName, number> {
  const { input, output, cache_read, cache_write } = info.usage;
  return {
    iterations: info.iterations,
    cost: info.cost.usd,
    tokens: input + output + cache_read + cache_write,
    time: Math.ceil(info.time),
  };
}

/** Return what the fields say; empty is no limit. Throws an Error, with a message, for what lets it not go on. */
export function limitsFrom(fields: Record<LimitName, string>, used: Record<LimitName, number>): Limits {
  const found: Limits = { iterations: null, cost: null, tokens: null, time: null };
  for (const { name, label, unit } of LIMITS) {
    const text = fields[name].trim().replaceAll(",", "");
    if (!text) continue;
    const value = Number(text);
    if (!Number.isFinite(value) || value <= 0) throw new Error(`${label}: "${fields[name]}" is no number above 0.`);
    if (value <= used[name])
      throw new Error(`${label}: it must be more than the ${used[name]} ${unit} that are spent.`);
    found[name] = name === "iterations" || name === "tokens" ? Math.ceil(value) : value;
  }
  return found;
}
