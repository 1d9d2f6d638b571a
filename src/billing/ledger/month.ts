import { dayMs } from "../../platform/kernel/clock.ts";

/** A month of the UTC calendar, such as `2026-11`. Months sort by time. */
export type Month = `${number}-${string}`;

/** Returns the month of a wall time in milliseconds. */
export const monthOf = (atMs: number): Month =>
  new Date(atMs).toISOString().slice(0, "2026-11".length) as Month;

/** Returns the start of a month, in milliseconds since the Unix epoch. */
export const startOfMonthMs = (month: Month): number => Date.parse(`${month}-01T00:00:00Z`);

/** Returns the next month. */
export const monthAfter = (month: Month): Month => monthOf(startOfMonthMs(month) + 32 * dayMs);
