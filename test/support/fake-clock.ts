import type { Clock } from "../../src/platform/kernel/clock.ts";

/** A clock that only moves when a test moves it. */
export class FakeClock implements Clock {
  private wallMs: number;
  private readonly startMs: number;
  private lostMs = 0;

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

  livedMs(): number {
    return this.monotonicMs() - this.lostMs;
  }

  /** Advances the time while the process is suspended. */
  standStill(milliseconds: number): void {
    this.lostMs += milliseconds;
    this.advance(milliseconds);
  }

  advance(milliseconds: number): void {
    this.wallMs += milliseconds;
  }
}
