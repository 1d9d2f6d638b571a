import { type Clock, systemClock } from "../../src/platform/kernel/clock.ts";

const noonMs = Date.UTC(2026, 10, 18, 12);

/**
 * Returns a clock that runs as the machine's does, from noon of a Wednesday on: no day, week or
 * month ends between two questions of a test.
 */
export function middayClock(): Clock {
  const startMs = performance.now();
  return { ...systemClock, nowMs: () => Math.floor(noonMs + performance.now() - startMs) };
}
