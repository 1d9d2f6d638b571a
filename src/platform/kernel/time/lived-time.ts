/**
 * Milliseconds between beats, and the delay of a beat from which the process counts as suspended.
 */
export const beatMs = 250;

/**
 * Milliseconds after the last reading in which beats go on: longer than any wait that is measured.
 * An idle process is not woken for them.
 */
const beatsForMs = 60_000;

/** Monotonic time in which a process ran. A late beat shows that it was suspended. */
export class LivedTime {
  private readonly monotonicMs: () => number;
  private dueMs: number;
  private readMs: number;
  private lostMs = 0;

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
    this.readMs = monotonicMs();
    this.dueMs = this.readMs + beatMs;
  }

  /**
   * Returns the monotonic time less what was lost, including the time of a beat that is late now.
   */
  nowMs(): number {
    const nowMs = this.monotonicMs();
    this.readMs = nowMs;
    return nowMs - this.lostMs - this.lateMs(nowMs);
  }

  /**
   * Notes that the process runs; called every `beatMs`. Returns false once nothing was read for a
   * while, and the beats may end until the next reading.
   */
  beat(): boolean {
    const nowMs = this.monotonicMs();
    this.lostMs += this.lateMs(nowMs);
    this.dueMs = nowMs + beatMs;
    return nowMs - this.readMs < beatsForMs;
  }

  /** Begins again after beats have ended. Time without beats counts as lived. */
  resume(): void {
    this.dueMs = this.monotonicMs() + beatMs;
  }

  private lateMs(nowMs: number): number {
    return Math.max(0, nowMs - this.dueMs - beatMs);
  }
}
