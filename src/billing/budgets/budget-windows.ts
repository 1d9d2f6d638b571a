import { dayMs } from "../../platform/kernel/clock.ts";
import { startOfZonedDay, zonedDayOf } from "../../platform/kernel/time/zoned-days.ts";
import { basePeriodOf, eachSubject, periodAt, tagOf, type Budget, type Span } from "./budget.ts";

/** The scope of the sums of budgets in a time zone: one for each of their periods. */
export const windowScope = "window";

/** Returns the period of a budget that contains a wall time, in the budget's time zone. */
export function spanOf(
  { period, timeZone }: Pick<Budget, "period" | "timeZone">,
  atMs: number,
): Span {
  if (timeZone === null) return periodAt(period, atMs);
  // Days of the zone are counted as if they were days in UTC, and then placed in time.
  const { startMs, endMs } = periodAt(period, zonedDayOf(timeZone, atMs) * dayMs);
  return {
    startMs: startOfZonedDay(timeZone, startMs / dayMs),
    endMs: startOfZonedDay(timeZone, endMs / dayMs),
  };
}

/**
 * Returns the subject of the sum of one period of a budget in a time zone, or of one value in it
 * where the budget bounds each by itself.
 */
export const windowSubjectOf = (
  { id }: Pick<Budget, "id">,
  { startMs, value }: { startMs: number; value?: string | undefined },
): string => `${id}@${startMs}${value === undefined ? "" : `@${value}`}`;

/** Returns the budget's id, the start of the period and the value of such a subject. */
export function readWindowSubject(subject: string): { startMs: number; value: string | undefined } {
  const [, startMs = "0", ...values] = subject.split("@");
  return { startMs: Number(startMs), value: values.length === 0 ? undefined : values.join("@") };
}

const lengths = { daily: 1, weekly: 7, monthly: 31, total: 0 } as const;

/**
 * Returns days, in UTC, that surely contain every request of a period. The subject tells periods
 * apart, so that the days may be too many.
 */
export function daysOfWindow({ period }: Pick<Budget, "period">, startMs: number): Span {
  const firstDay = Math.floor(startMs / dayMs) - 1;
  const days = lengths[basePeriodOf(period).period] + 4;
  return { startMs: firstDay * dayMs, endMs: (firstDay + days) * dayMs };
}

/** The sum that a budget bounds at a wall time: of the subject itself, or of a period of it. */
export interface CountedSum extends Pick<Budget, "workspaceId" | "scope" | "subject"> {
  fromMs: number;
  toMs: number;
}

/** Returns which sum a budget bounds at a wall time. `*` stays, and means each of them. */
export function sumOf(budget: Budget, atMs: number): CountedSum {
  const { workspaceId, scope, subject } = budget;
  const { startMs, endMs } = spanOf(budget, atMs);
  if (budget.timeZone === null)
    return { workspaceId, scope, subject, fromMs: startMs, toMs: endMs };
  const days = daysOfWindow(budget, startMs);
  const value = subject === eachSubject ? eachSubject : undefined;
  return {
    workspaceId,
    scope: windowScope,
    subject: windowSubjectOf(budget, { startMs, value }),
    fromMs: days.startMs,
    toMs: days.endMs,
  };
}

/** Returns the name of a sum. Its range is of whole days. */
export const counterNameOf = ({ fromMs, toMs, ...sum }: CountedSum): string =>
  `${tagOf(sum)}~${fromMs / dayMs}~${toMs / dayMs}`;
