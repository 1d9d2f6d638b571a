import { dayMs } from "../../platform/kernel/clock.ts";

/** A month of the UTC calendar as `2026-11`; sorts by time. */
export type Month = `${number}-${string}`;

/** The month that a wall time in milliseconds falls into. */
export const monthOf = (atMs: number): Month =>
  new Date(atMs).toISOString().slice(0, "2026-11".length) as Month;

/** When a month begins, in milliseconds since the Unix epoch. */
export const startOfMonthMs = (month: Month): number => Date.parse(`${month}-01T00:00:00Z`);

/** The month that follows one. */
export const monthAfter = (month: Month): Month => monthOf(startOfMonthMs(month) + 32 * dayMs);
