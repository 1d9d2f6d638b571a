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
  ["weekly@7", "2026-11-21T23:59:59Z", "2026-11-15", "2026-11-22"],
  ["weekly@7", "2026-11-22T00:00:00Z", "2026-11-22", "2026-11-29"],
  ["weekly@3", "2026-11-22T12:00:00Z", "2026-11-18", "2026-11-25"],
  ["monthly@15", "2026-01-14T23:59:59Z", "2025-12-15", "2026-01-15"],
  ["monthly@15", "2026-01-15T00:00:00Z", "2026-01-15", "2026-02-15"],
  ["monthly@31", "2027-02-27T12:00:00Z", "2027-01-31", "2027-02-28"],
  ["monthly@31", "2027-02-28T00:00:00Z", "2027-02-28", "2027-03-31"],
  ["monthly@31", "2027-12-31T00:00:00Z", "2027-12-31", "2028-01-31"],
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
