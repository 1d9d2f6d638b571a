import { expect, test } from "bun:test";
import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import { type RecordSlice, type SlicesQuery, sliceMsOf } from "./generation-sizes.ts";
import { LogBudget } from "./log-budget.ts";

const nowMs = Date.UTC(2026, 10, 21, 12);
const { signal } = new AbortController();

/**
 * Records in memory, by when they came and how much they take, and every range that was measured of
 * them.
 */
class KeptSizes {
  records: { atMs: number; bytes: number }[] = [];
  measured: Pick<SlicesQuery, "fromMs" | "toMs" | "digits">[] = [];

  add(atMs: number, bytes = 100): void {
    this.records.push({ atMs, bytes });
  }

  deleteBefore(beforeMs: number): void {
    this.records = this.records.filter(({ atMs }) => atMs >= beforeMs);
  }

  total = (): number => this.records.reduce((sum, { bytes }) => sum + bytes, 0);
  atMost = async (): Promise<number> => this.total() + 1_000_000;
  workspaceIds = async (): Promise<string[]> => ["ws"];

  async slices({ fromMs, toMs, digits }: SlicesQuery): Promise<RecordSlice[]> {
    this.measured.push({ fromMs, toMs, digits });
    const slices = new Map<number, RecordSlice>();
    for (const { atMs, bytes } of this.records) {
      if (atMs < fromMs || atMs >= toMs) continue;
      const startMs = Math.floor(atMs / sliceMsOf(digits)) * sliceMsOf(digits);
      const slice = slices.get(startMs) ?? { startMs, rows: 0, bytes: 0 };
      slices.set(startMs, { startMs, rows: slice.rows + 1, bytes: slice.bytes + bytes });
    }
    return [...slices.values()].sort((left, right) => left.startMs - right.startMs);
  }
}

/** Deletes what is too many, as the retention does; tells how many were said to be. */
async function deleteExcess(sizes: KeptSizes, budget: LogBudget, atMs = nowMs): Promise<number> {
  const excess = await budget.excess({ nowMs: atMs, signal });
  if (excess === undefined) return 0;
  const count = sizes.records.filter(({ atMs: cameMs }) => cameMs < excess.beforeMs).length;
  expect(excess.rows).toBe(count);
  budget.forget(excess.beforeMs);
  sizes.deleteBefore(excess.beforeMs);
  return count;
}

test("LogBudget keeps exactly the newest records that fit", async () => {
  const sizes = new KeptSizes();
  const budget = new LogBudget({ sizes, budgetBytes: 20_000 });
  for (let run = 0; run < 200; run++) {
    const runMs = nowMs + run * hourMs;
    // Now a few, now more than the budget holds at once, of different lengths.
    for (let index = 0; index < (run * 37) % 90; index++)
      sizes.add(runMs - 1 - ((index * 40_503) % hourMs), 100 + ((index * 131) % 900));
    const before = [...sizes.records].sort((left, right) => right.atMs - left.atMs);
    let room = 20_000;
    const fits = before.findIndex(({ bytes }) => (room -= bytes) < 0);
    await deleteExcess(sizes, budget, runMs);
    expect(sizes.records).toHaveLength(fits < 0 ? before.length : fits);
    expect(sizes.total()).toBeLessThanOrEqual(20_000);
  }
});

test("LogBudget does not measure past hours again", async () => {
  const sizes = new KeptSizes();
  for (let day = 90; day > 0; day--) sizes.add(nowMs - day * dayMs);
  const budget = new LogBudget({ sizes, budgetBytes: 9_000 });
  expect(await deleteExcess(sizes, budget)).toBe(0);
  expect(sizes.measured[0]?.fromMs).toBe(0);
  sizes.measured = [];
  sizes.add(nowMs);
  expect(await deleteExcess(sizes, budget)).toBe(1);
  expect(sizes.measured[0]?.fromMs).toBeGreaterThan(nowMs - hourMs - 2 * sliceMsOf(6));
  sizes.measured = [];
  expect(await deleteExcess(sizes, budget)).toBe(0);
  // Only what is left of the slice in which was deleted, and the newest.
  for (const { fromMs, toMs } of sizes.measured)
    expect(toMs <= nowMs - 89 * dayMs || fromMs > nowMs - 12 * hourMs).toBe(true);
});

test("LogBudget deletes or keeps records of the same millisecond together", async () => {
  const sizes = new KeptSizes();
  for (const atMs of [nowMs - 2, nowMs - 1, nowMs - 1, nowMs]) sizes.add(atMs);
  expect(await deleteExcess(sizes, new LogBudget({ sizes, budgetBytes: 250 }))).toBe(3);
});

test("LogBudget deletes no further records after others were deleted meanwhile", async () => {
  const sizes = new KeptSizes();
  for (let day = 20; day > 0; day--) sizes.add(nowMs - day * dayMs);
  const budget = new LogBudget({ sizes, budgetBytes: 2_000 });
  expect(await deleteExcess(sizes, budget)).toBe(0);
  sizes.deleteBefore(nowMs - 10 * dayMs);
  for (let index = 0; index < 10; index++) sizes.add(nowMs + index);
  // What it still takes for there lies before every record that is.
  const excess = await budget.excess({ nowMs, signal });
  expect(excess?.beforeMs).toBeLessThanOrEqual(nowMs - 10 * dayMs);
  budget.forget();
  expect(await deleteExcess(sizes, budget)).toBe(0);
  sizes.add(nowMs + 10);
  expect(await deleteExcess(sizes, budget)).toBe(1);
});

test("LogBudget reads nothing while the whole database fits", async () => {
  const sizes = new KeptSizes();
  sizes.add(nowMs);
  expect(
    await new LogBudget({ sizes, budgetBytes: 2_000_000 }).excess({ nowMs, signal }),
  ).toBeUndefined();
  expect(sizes.measured).toEqual([]);
});

test("LogBudget deletes nothing if measuring is aborted", async () => {
  const sizes = new KeptSizes();
  for (let index = 0; index < 10; index++) sizes.add(nowMs - index);
  expect(
    await new LogBudget({ sizes, budgetBytes: 500 }).excess({ nowMs, signal: AbortSignal.abort() }),
  ).toBeUndefined();
});
