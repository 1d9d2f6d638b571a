/** Time as a dependency, so that tests can advance it. */
export interface Clock {
  /** Returns the wall time in milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Returns the monotonic time in milliseconds, for measuring durations. */
  monotonicMs(): number;
  /**
   * Returns the monotonic time without periods in which this process was suspended. It measures how
   * long another party takes, whose answer could not be read during those periods.
   */
  livedMs(): number;
}

/**
 * Milliseconds between beats, and the delay of a beat from which the process counts as suspended.
 */
const beatMs = 250;

/** Monotonic time in which a process ran. A late beat shows that it was suspended. */
export class LivedTime {
  private readonly monotonicMs: () => number;
  private dueMs: number;
  private lostMs = 0;

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
    this.dueMs = monotonicMs() + beatMs;
  }

  /**
   * Returns the monotonic time less what was lost, including the time of a beat that is late now.
   */
  nowMs(): number {
    const nowMs = this.monotonicMs();
    return nowMs - this.lostMs - this.lateMs(nowMs);
  }

  /** Notes that the process runs; called every `beatMs`. */
  beat(): void {
    const nowMs = this.monotonicMs();
    this.lostMs += this.lateMs(nowMs);
    this.dueMs = nowMs + beatMs;
  }

  private lateMs(nowMs: number): number {
    return Math.max(0, nowMs - this.dueMs - beatMs);
  }
}

let lived: LivedTime | undefined;

/** Returns the lived time of this process, measured from its first reader on. */
function livedTime(): LivedTime {
  if (lived === undefined) {
    const time = new LivedTime(() => performance.now());
    setInterval(() => time.beat(), beatMs).unref();
    lived = time;
  }
  return lived;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  livedMs: () => livedTime().nowMs(),
};

/** Milliseconds of one minute, one hour and one day. */
export const minuteMs = 60_000;
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

/** Returns the ISO 8601 text of a wall time, or null for an absent one. */
export const isoOrNull = (atMs: number | null): string | null =>
  atMs === null ? null : new Date(atMs).toISOString();

/** Wall times that are all different, so that lists by age have a definite order. */
export class DistinctTime {
  private readonly clock: Clock;
  private newestMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Returns the present time, or the first millisecond after the last one that was returned. */
  nextMs(): number {
    this.newestMs = Math.max(this.clock.nowMs(), this.newestMs + 1);
    return this.newestMs;
  }
}
