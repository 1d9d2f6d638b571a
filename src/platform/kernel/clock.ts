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

let lived: LivedTime | undefined;
let beating: ReturnType<typeof setInterval> | undefined;

/** Returns the lived time of this process, measured from its first reader on. */
function livedTime(): LivedTime {
  lived ??= livedTimeOf(() => performance.now());
  if (beating === undefined) beginBeats(lived);
  return lived;
}

function beginBeats(time: LivedTime): void {
  time.resume();
  beating = setInterval(() => {
    if (!time.beat()) endBeats();
  }, beatMs);
  beating.unref();
}

/** Ends the beats; the next reading of the lived time begins them again. */
export function endBeats(): void {
  clearInterval(beating);
  beating = undefined;
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

/**
 * Milliseconds between beats, and the delay of a beat from which the process counts as suspended.
 */
const beatMs = 250;

/**
 * Milliseconds after the last reading in which beats go on: longer than any wait that is measured.
 * An idle process is not woken for them.
 */
const beatsForMs = 60_000;

/** Monotonic time in which a process ran. A late beat shows that it was suspended. */
class LivedTime {
  private dueMs: number;
  private readMs: number;
  private lostMs = 0;

  constructor(private readonly monotonicMs: () => number) {
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

/** Measures the time in which a process with this clock ran. */
export const livedTimeOf = (monotonicMs: () => number): LivedTime => new LivedTime(monotonicMs);
