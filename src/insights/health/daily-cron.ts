import { assert } from "../../platform/lib/assert.ts";
import { dayMs, hourMs, minuteMs } from "../../platform/lib/clock.ts";

const dailyPattern = /^(\d{1,2}) (\d{1,2}) \* \* \*$/;

/** The last time at or before a wall time that a daily cron text such as `17 4 * * *` (UTC) names, in milliseconds. */
export function lastDailyRun(cron: string, nowMs: number): number {
  const match = dailyPattern.exec(cron);
  assert(match !== null, `${cron} is not minute and hour of every day`);
  const ofDayMs = Number(match[1]) * minuteMs + Number(match[2]) * hourMs;
  return Math.floor((nowMs - ofDayMs) / dayMs) * dayMs + ofDayMs;
}
