/**
 * Loaded before a gateway by tests of clocks that differ: wall time is `TEST_CLOCK_AHEAD_MS` ahead,
 * as on a machine with a wrong clock. Durations do not change.
 */
const aheadMs = Number(process.env["TEST_CLOCK_AHEAD_MS"]);
const RealDate = Date;
const realNow = Date.now;

class ShiftedDate extends RealDate {
  constructor(...parts: unknown[]) {
    if (parts.length === 0) super(realNow() + aheadMs);
    else super(...(parts as [number]));
  }

  static override now(): number {
    return realNow() + aheadMs;
  }
}

globalThis.Date = ShiftedDate as DateConstructor;
