import { expect, test } from "bun:test";
import { periodAt, reachedThresholds, type BudgetPeriod } from "./budget.ts";

const rows: [period: BudgetPeriod, now: string, start: string, end: string][] = [
  ["daily", "2026-11-22T00:00:00Z", "2026-11-22", "2026-11-23"],
  ["daily", "2026-11-22T23:59:59.999Z", "2026-11-22", "2026-11-23"],
  ["weekly", "2026-11-22T23:59:59Z", "2026-11-16", "2026-11-23"],
  ["weekly", "2026-11-23T00:00:00Z", "2026-11-23", "2026-11-30"],
  ["weekly", "1970-01-01T12:00:00Z", "1969-12-29", "1970-01-05"],
  ["monthly", "2026-12-31T23:59:59Z", "2026-12-01", "2027-01-01"],
  ["monthly", "2028-02-29T12:00:00Z", "2028-02-01", "2028-03-01"],
];
test.each(rows)("a %s budget at %s covers the period from %s to %s", (period, now, start, end) => {
  const { startMs, endMs } = periodAt(period, Date.parse(now));
  expect([
    new Date(startMs).toISOString().slice(0, 10),
    new Date(endMs).toISOString().slice(0, 10),
  ]).toEqual([start, end]);
});

test.each([
  [0n, []],
  [499n, []],
  [500n, [50]],
  [999n, [50, 80]],
  [1_000n, [50, 80, 100]],
  [5_000n, [50, 80, 100]],
] as [bigint, number[]][])("%d of 1000 spent reaches the thresholds %j", (spent, reached) => {
  expect(reachedThresholds({ limitNano: 1_000n, thresholds: [50, 80, 100] }, spent)).toEqual(
    reached,
  );
});
