/** Figures as people read them. */

import { plain } from "../../chat/text";

/** Bytes, like 1.4 kB. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count / 1000;
  let at = 0;
  while (value >= 999.5 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[at]}`;
}

/** A count, with thin groups of three, like 12 345. */
export function count(number: number): string {
  return Math.round(number)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** USD, with as many digits as tell something. */
export function money(usd: number): string {
  if (usd === 0) return "$0";
  if (usd < 0.0001) return "< $0.0001";
  return `$${usd < 1 ? usd.toFixed(4) : usd.toFixed(2)}`;
}

/** Seconds, like 0.4 s, 12 s or 3 min 20 s. */
export function seconds(time: number): string {
  if (time < 10) return `${time.toFixed(1)} s`;
  if (time < 59.5) return `${Math.round(time)} s`;
  const whole = Math.round(time);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** The part of a whole, in percent. */
export function share(part: number, whole: number): string {
  return whole === 0 ? "0 %" : `${Math.round((100 * part) / whole)} %`;
}

// Making one takes longer than all it is used for.
const TIME = new Intl.DateTimeFormat([], { hour12: false, hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** The time of day of a moment, where the user is. */
export function clock(moment: string): string {
  return TIME.format(new Date(moment));
}

/** The first line of a text, without a terminal's colours, cut to `most` characters. */
export function line(text: string, most = 160): string {
  const first = plain(text.trim().split("\n", 1)[0] ?? "");
  return first.length > most ? `${first.slice(0, most - 1)}…` : first;
}
