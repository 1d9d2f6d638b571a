import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { UsageLine } from "../../insights/usage/usage-store.ts";
import { isTimeZone } from "../../platform/kernel/time/zoned-days.ts";
import { byZonedDay, hoursWithin, zonedDate, zonedRange } from "./analytics-query.ts";

const at = (text: string): number => Date.parse(text);
const iso = (atMs: number): string => new Date(atMs).toISOString();

describe("zonedRange", () => {
  test.each([
    ["UTC", "2026-11-22T00:00:00.000Z", "2026-11-23T00:00:00.000Z", "2026-11-22"],
    ["Europe/Berlin", "2026-11-21T23:00:00.000Z", "2026-11-22T23:00:00.000Z", "2026-11-22"],
    ["Asia/Kolkata", "2026-11-21T18:30:00.000Z", "2026-11-22T18:30:00.000Z", "2026-11-22"],
    ["America/New_York", "2026-11-22T05:00:00.000Z", "2026-11-23T05:00:00.000Z", "2026-11-22"],
    ["Pacific/Auckland", "2026-11-22T11:00:00.000Z", "2026-11-23T11:00:00.000Z", "2026-11-23"],
  ])("%s: the day of noon UTC starts at %s and ends at %s", (zone, from, to, date) => {
    const noon = at("2026-11-22T12:00:00Z");
    const range = zonedRange(zone, { fromMs: noon, toMs: noon + 1 });
    expect([iso(range.fromMs), iso(range.toMs), zonedDate(zone, range.fromMs)]).toEqual([
      from,
      to,
      date,
    ]);
  });

  test.each([
    ["2026-03-29T12:00:00Z", 23],
    ["2026-10-25T12:00:00Z", 25],
    ["2026-06-01T12:00:00Z", 24],
  ])("the day of %s in Berlin has %d hours", (noon, hours) => {
    const range = zonedRange("Europe/Berlin", { fromMs: at(noon), toMs: at(noon) + 1 });
    expect((range.toMs - range.fromMs) / 3_600_000).toBe(hours);
  });

  test("consecutive days of any zone have no gap, and their hours add up", () => {
    const zones = fc.constantFrom(
      "Europe/Berlin",
      "America/St_Johns",
      "Asia/Kathmandu",
      "Pacific/Chatham",
      "America/Sao_Paulo",
    );
    const start = fc.integer({ min: at("2020-01-01T00:00:00Z"), max: at("2026-12-01T00:00:00Z") });
    fc.assert(
      fc.property(zones, start, fc.integer({ min: 1, max: 400 }), (zone, fromMs, hours) => {
        const range = zonedRange(zone, { fromMs, toMs: fromMs + hours * 3_600_000 });
        const next = zonedRange(zone, { fromMs: range.toMs, toMs: range.toMs + 1 });
        expect(next.fromMs).toBe(range.toMs);
        const counted = hoursWithin(range);
        const lines = Array.from(
          { length: (counted.toMs - counted.fromMs) / 3_600_000 },
          (_, index): UsageLine => ({
            startMs: counted.fromMs + index * 3_600_000,
            requests: 1,
            errors: 0,
            prompt_tokens: index,
            completion_tokens: 0,
            cached_tokens: 0,
            reasoning_tokens: 0,
            costNanoUsd: 1n,
          }),
        );
        const days = byZonedDay(lines, zone);
        expect(days.reduce((sum, { requests }) => sum + requests, 0)).toBe(lines.length);
        for (const day of days) {
          expect(day.startMs).toBeGreaterThanOrEqual(range.fromMs);
          expect(day.startMs).toBeLessThan(range.toMs);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("isTimeZone accepts the names of the IANA database", () => {
    expect(["Europe/Berlin", "UTC", "Mars/Olympus", ""].map(isTimeZone)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
