const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

const format = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** Return how long ago a moment was, in words. */
export function ago(moment: string, now = Date.now()): string {
  const seconds = (Date.parse(moment) - now) / 1000;
  for (const [unit, size] of STEPS) if (-seconds >= size) return format.format(Math.round(seconds / size), unit);
  return "just now";
}

/** Return a moment as the user's clock has it. */
export function clock(moment: string): string {
  return new Date(moment).toLocaleString();
}
