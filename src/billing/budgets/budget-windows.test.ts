import { expect, test } from "bun:test";
import { hourMs } from "../../platform/kernel/clock.ts";
import { daysOfWindow, spanOf } from "./budget-windows.ts";
import type { BudgetPeriod } from "./budget.ts";

type Row = [period: BudgetPeriod, zone: string, now: string, start: string, end: string];

/** Each with a moment just before its start, or at it. */
const rows: Row[] = [
  ["daily", "Europe/Berlin", "2026-11-28T22:59:59.999Z", "2026-11-27T23:00Z", "2026-11-28T23:00Z"],
  ["daily", "Europe/Berlin", "2026-11-28T23:00:00Z", "2026-11-28T23:00Z", "2026-11-29T23:00Z"],
  // The clocks go forward and back at night: days of 23 and of 25 hours.
  ["daily", "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z"],
  ["daily", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z"],
  ["weekly", "America/New_York", "2026-11-01T12:00:00Z", "2026-10-26T04:00Z", "2026-11-02T05:00Z"],
  ["monthly", "America/New_York", "2026-03-01T04:59:59Z", "2026-02-01T05:00Z", "2026-03-01T05:00Z"],
  ["monthly", "America/New_York", "2026-03-31T12:00:00Z", "2026-03-01T05:00Z", "2026-04-01T04:00Z"],
  ["monthly@15", "Asia/Kolkata", "2026-01-14T18:29:59Z", "2025-12-14T18:30Z", "2026-01-14T18:30Z"],
  ["monthly@31", "Pacific/Auckland", "2027-02-28T12:00Z", "2027-02-27T11:00Z", "2027-03-30T11:00Z"],
  ["weekly@7", "Asia/Kathmandu", "2026-11-28T18:15:00Z", "2026-11-28T18:15Z", "2026-12-05T18:15Z"],
  // Midnight does not exist where the clocks go forward then: the day begins with the next moment.
  ["daily", "America/Santiago", "2026-09-06T12:00:00Z", "2026-09-06T04:00Z", "2026-09-07T03:00Z"],
  ["daily", "Africa/Cairo", "2026-04-24T12:00:00Z", "2026-04-23T22:00Z", "2026-04-24T21:00Z"],
  // It comes twice where they go back then: the day begins with the first.
  ["daily", "America/Havana", "2026-11-01T12:00:00Z", "2026-11-01T04:00Z", "2026-11-02T05:00Z"],
  ["daily", "Asia/Beirut", "2026-10-25T12:00:00Z", "2026-10-24T22:00Z", "2026-10-25T22:00Z"],
];
test.each(rows)("a %s budget in %s at %s covers %s to %s", (period, timeZone, now, start, end) => {
  const { startMs, endMs } = spanOf({ period, timeZone }, Date.parse(now));
  const shown = [startMs, endMs].map((atMs) => new Date(atMs).toISOString());
  expect(shown.map((text) => text.replace(":00.000Z", "Z"))).toEqual([start, end]);
});

test.each([
  ["Europe/Berlin", "daily"],
  ["America/Havana", "weekly@3"],
  ["Asia/Amman", "monthly@31"],
  ["Australia/Lord_Howe", "daily"],
  ["America/Sao_Paulo", "monthly"],
] as const)("the periods of %s follow each other without a gap (%s)", (timeZone, period) => {
  const budget = { period, timeZone };
  const untilMs = Date.parse("2019-01-15T00:00:00Z");
  let span = spanOf(budget, Date.parse("2017-01-15T00:00:00Z"));
  while (span.startMs < untilMs) {
    const days = daysOfWindow(budget, span.startMs);
    expect(days.startMs).toBeLessThanOrEqual(span.startMs);
    expect(days.endMs).toBeGreaterThan(span.endMs);
    expect(spanOf(budget, span.endMs - 1)).toEqual(span);
    expect(spanOf(budget, (span.startMs + span.endMs) / 2)).toEqual(span);
    const next = spanOf(budget, span.endMs);
    expect(next.startMs).toBe(span.endMs);
    expect(next.endMs - next.startMs).toBeGreaterThanOrEqual(23 * hourMs);
    span = next;
  }
});
