import { expect, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { recordOf } from "../../test/support/generation-records.ts";
import { minuteMs } from "../platform/kernel/clock.ts";
import type { CommitUnit } from "../platform/storage/commit-queue.ts";
import {
  recordsPerMinuteMax,
  UnsettledRecords,
  type UnrecordedRequests,
} from "./unsettled-records.ts";

function scene() {
  const clock = new FakeClock();
  const units: CommitUnit[] = [];
  const excess: UnrecordedRequests[] = [];
  const commits = {
    stalled: false,
    rejectedCount: 0,
    admits: () => true,
    pendingCount: 0,
    flush: () => Promise.resolve(),
    commit: (unit: CommitUnit) => {
      units.push(unit);
      return Promise.resolve();
    },
  };
  const records = new UnsettledRecords({
    commits,
    clock,
    onError: (error) => {
      throw error;
    },
    onExcess: (each) => excess.push(each),
  });
  const write = (count: number, workspaceId = "ws_own"): number => {
    const before = units.length;
    for (let index = 0; index < count; index += 1)
      records.write(recordOf({ status: "failed", workspaceId }));
    return units.slice(before).filter(({ inserts }) => inserts.length > 0).length;
  };
  return { clock, commits, units, excess, write };
}

test("records of a workspace are capped per minute, all requests are counted, and the excess reported", () => {
  const { clock, units, excess, write } = scene();
  expect(write(recordsPerMinuteMax + 5)).toBe(recordsPerMinuteMax);
  expect(units).toHaveLength(recordsPerMinuteMax + 5);
  expect(units.every(({ adds }) => adds.length > 0)).toBe(true);
  expect(write(1, "ws_other")).toBe(1);
  expect(excess).toEqual([]);
  clock.advance(minuteMs);
  expect(write(1)).toBe(1);
  expect(excess).toEqual([{ workspaceId: "ws_own", requests: 5 }]);
});

test("no records are written while commits are stalled", () => {
  const { commits, units, write } = scene();
  commits.stalled = true;
  expect(write(3)).toBe(0);
  expect(units).toEqual([]);
});
