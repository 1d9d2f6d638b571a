/** Time as a dependency, so that tests can move it by hand. */
export interface Clock {
  /** Wall time in milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Monotonic time in milliseconds, for measuring durations. */
  monotonicMs(): number;
  /**
   * Monotonic time without that in which this process stood still, for how long someone else may
   * take: what it answered meanwhile could not be read.
   */
  livedMs(): number;
}

/** How often lived time is looked at, and how late that may be before it is time lost. */
const beatMs = 250;

/** Monotonic time as a process lived it. A beat that comes late tells that it stood still. */
export class LivedTime {
  private readonly monotonicMs: () => number;
  private dueMs: number;
  private lostMs = 0;

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
    this.dueMs = monotonicMs() + beatMs;
  }

  /** Monotonic time less what was lost, that of a beat which is late now included. */
  nowMs(): number {
    const nowMs = this.monotonicMs();
    return nowMs - this.lostMs - this.lateMs(nowMs);
  }

  /** Tells that the process runs; called every `beatMs`. */
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

/** The lived time of this process, from its first reader on. */
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

/** ISO 8601 text of a wall time, or null for an absent one. */
export const isoOrNull = (atMs: number | null): string | null =>
  atMs === null ? null : new Date(atMs).toISOString();

/** Wall times of which no two are the same millisecond, so that lists by age have one order. */
export class DistinctTime {
  private readonly clock: Clock;
  private newestMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Now, or the first millisecond after the one that was given last. */
  nextMs(): number {
    this.newestMs = Math.max(this.clock.nowMs(), this.newestMs + 1);
    return this.newestMs;
  }
}
