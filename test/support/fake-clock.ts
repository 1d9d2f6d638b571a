import type { Clock } from "../../src/platform/kernel/clock.ts";

/** A clock that only moves when a test moves it. */
export class FakeClock implements Clock {
  private wallMs: number;
  private readonly startMs: number;

  constructor(startMs = Date.UTC(2026, 10, 21, 12)) {
    this.wallMs = startMs;
    this.startMs = startMs;
  }

  nowMs(): number {
    return this.wallMs;
  }

  monotonicMs(): number {
    return this.wallMs - this.startMs;
  }

  advance(milliseconds: number): void {
    this.wallMs += milliseconds;
  }
}
