const cents = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const whole = new Intl.NumberFormat("en-US");

/**
 * An amount of money: sums to the cent, amounts under half a cent to three significant digits,
 * unknown as a dash.
 */
export function usd(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return "–";
  if (amount === 0) return "$0.00";
  return Math.abs(amount) < 0.005 ? requestCost(amount) : cents.format(amount);
}

/** The cost of one request: three significant digits, two to nine places. */
export function requestCost(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return "–";
  if (amount === 0) return "$0.00";
  const places = Math.min(9, Math.max(2, 2 - Math.floor(Math.log10(Math.abs(amount)))));
  return `$${amount.toFixed(places)}`;
}

/** A price per million tokens. */
export const unitPrice = (amount: number | null | undefined): string =>
  amount === null || amount === undefined
    ? "–"
    : `$${amount.toFixed(amount < 0.1 && amount > 0 ? 4 : 2)}`;

/** A count: in full below 10,000, then shortened. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10_000) return whole.format(value);
  if (Math.abs(value) < 1_000_000) return `${(value / 1_000).toFixed(1)}K`;
  if (Math.abs(value) < 1_000_000_000) return `${(value / 1_000_000).toFixed(1)}M`;
  return `${(value / 1_000_000_000).toFixed(1)}B`;
}

/** A count with the noun that it counts: `1 key`, `2 keys`. */
export const countOf = (value: number, noun: string): string =>
  `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** A size in bytes, as a person reads it. */
export function bytes(size: number): string {
  if (size < 1_000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1_000).toFixed(1)} kB`;
  if (size < 1_000_000_000) return `${(size / 1_000_000).toFixed(1)} MB`;
  return `${(size / 1_000_000_000).toFixed(1)} GB`;
}

/** A time span in milliseconds, as long as a person reads it. */
export function duration(milliseconds: number | null | undefined): string {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 10_000) return `${(milliseconds / 1_000).toFixed(2)} s`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1_000)} s`;
}

/** A share of a whole, as a percentage. */
export const share = (part: number, total: number): string =>
  total === 0 ? "–" : `${((100 * part) / total).toFixed(2)} %`;

/** The change against a period before, in words. */
export function change(now: number, before: number, period = "the period before"): string {
  if (before === 0) return now === 0 ? "" : `none in ${period}`;
  const percent = Math.round((100 * (now - before)) / before);
  const sign = percent > 0 ? "+" : percent < 0 ? "−" : "";
  return `${sign}${Math.abs(percent)} % against ${period}`;
}

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** A day, short: of UTC unless a zone is named. */
export const shortDay = (iso: string, zone = "UTC"): string =>
  (zone === "UTC"
    ? day
    : new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: zone })
  ).format(new Date(iso));

export { localTime, utc } from "./time.ts";
