/** The limits of a session as form fields. */

import type { SessionView } from "../../generated/types";
import type { Limits } from "../events";

export type LimitName = keyof Limits;
export const LIMITS: { name: LimitName; label: string; unit: string }[] = [
  { name: "iterations", label: "Steps", unit: "steps" },
  { name: "cost", label: "Cost", unit: "USD" },
  { name: "tokens", label: "Tokens", unit: "tokens" },
  { name: "time", label: "Time", unit: "seconds" },
];

export function usedOf({ iterations, cost, usage, time }: SessionView): Record<LimitName, number> {
  const tokens = Object.values(usage).reduce((sum, kind) => sum + kind, 0);
  return { iterations, cost: cost.usd, tokens, time: Math.ceil(time) };
}

/** Return the limits of the fields; an empty field is no limit. Throws an Error for a limit below the usage. */
export function limitsFrom(fields: Record<LimitName, string>, used: Record<LimitName, number>): Limits {
  const limits: Limits = { iterations: null, cost: null, tokens: null, time: null };
  for (const { name, label, unit } of LIMITS) {
    const written = fields[name].trim();
    // Commas between thousands only: "0,50" may be meant as a half.
    const text = /^[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(written) ? written.replaceAll(",", "") : written;
    if (!text) continue;
    const value = Number(text);
    if (!Number.isFinite(value) || value <= 0) throw new Error(`${label}: "${fields[name]}" is not a number above 0.`);
    if (value <= used[name]) throw new Error(`${label}: must be more than the ${used[name]} ${unit} already used.`);
    limits[name] = name === "iterations" || name === "tokens" ? Math.ceil(value) : value;
  }
  return limits;
}
