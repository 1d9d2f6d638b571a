import { expect, test } from "bun:test";
import { lastDailyRun } from "./daily-cron.ts";

test.each([
  ["2026-11-21T04:16:59.999Z", "2026-11-20T04:17:00.000Z"],
  ["2026-11-21T04:17:00.000Z", "2026-11-21T04:17:00.000Z"],
  ["2026-11-21T23:59:59.000Z", "2026-11-21T04:17:00.000Z"],
])("at %s the last run was due at %s", (now, expected) => {
  expect(new Date(lastDailyRun("17 4 * * *", Date.parse(now))).toISOString()).toBe(expected);
});

test("a text that is no time of every day is a mistake of ours", () => {
  expect(() => lastDailyRun("*/5 * * * *", 0)).toThrow("minute and hour of every day");
});
