import { beatMs, LivedTime } from "./time/lived-time.ts";

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
  lived ??= new LivedTime(() => performance.now());
  if (beating === undefined) beginBeats(lived);
  return lived;
}

function beginBeats(time: LivedTime): void {
  time.resume();
  beating = setInterval(() => {
    if (time.beat()) return;
    clearInterval(beating);
    beating = undefined;
  }, beatMs);
  beating.unref();
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
