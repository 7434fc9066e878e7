/** Numbers and times in the form people read. */

/** Bytes, like 1.4 kB. */
export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = size / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

/** A whole number, like 12,345. */
export function count(number: number): string {
  return Math.round(number).toLocaleString("en");
}

/** A number and its noun, like 1 step or 2 steps. */
export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** USD; four decimals below one dollar. */
export function money(usd: number): string {
  if (usd === 0) return "$0";
  if (usd < 0.0001) return "< $0.0001";
  return `$${usd < 1 ? usd.toFixed(4) : usd.toFixed(2)}`;
}

/** The cost of calls, of which some may have no known price. */
export function costText({ usd, unpriced }: { usd: number; unpriced: number }): string {
  if (unpriced === 0) return money(usd);
  return usd === 0 ? "cost unknown" : `at least ${money(usd)}`;
}

/** A duration, like 40 ms, 0.4 s, 12 s or 3 min 20 s. */
export function duration(seconds: number): string {
  if (seconds < 0.095) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** A part of a whole in percent. */
export function share(part: number, whole: number): string {
  return whole === 0 ? "0 %" : `${Math.round((100 * part) / whole)} %`;
}

// Creating a format is slower than all its uses.
const CLOCK = { hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;
const TIME = new Intl.DateTimeFormat([], CLOCK);
const DATE = new Intl.DateTimeFormat([], { ...CLOCK, year: "numeric", month: "short", day: "numeric" });
const AGE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const AGES: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

/** The local time of day. */
export function clock(timestamp: string): string {
  return TIME.format(new Date(timestamp));
}

/** The local date and time of day. */
export function dateAndTime(timestamp: string): string {
  return DATE.format(new Date(timestamp));
}

/** The age of a timestamp in words. */
export function age(timestamp: string, now = Date.now()): string {
  const seconds = (now - Date.parse(timestamp)) / 1000;
  for (const [unit, size] of AGES) if (seconds >= size) return AGE.format(-Math.round(seconds / size), unit);
  return "just now";
}
