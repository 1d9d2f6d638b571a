import { type Clock, systemClock } from "../../platform/kernel/clock.ts";
import { type Passing, PassingSet } from "../../platform/kernel/passing/passing-set.ts";

/**
 * The time that a body may take: these milliseconds, plus its length divided by this rate. Of what
 * its bytes earn, a client can save up at most `savedMsMax`, so that a fast start does not buy
 * minutes of silence.
 */
export const graceMs = 10_000;
export const bytesPerSecondMin = 32 * 1024;
export const savedMsMax = 20_000;

/** Returns the milliseconds that bytes of a body have earned. */
export const earnedMs = (bytes: number): number => (bytes / bytesPerSecondMin) * 1000;

/** A wait for a body, or for a part of it. */
export interface BodyWait extends Passing {
  /** When the wait has taken too long, on the clock of lived time. */
  dueMs: number;
  onLate(): void;
}

/** Milliseconds between looks; a wait may end later by as much. */
const lookEveryMs = 250;

/**
 * Ends waits for bodies that take too long, with one timer for all: most bodies have come by the
 * end of the turn, so a timer for each would be set and cleared for nothing.
 */
export class BodyDeadlines {
  private readonly waits = new PassingSet<BodyWait>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly clock: Pick<Clock, "livedMs">) {}

  /** Watches a wait until `forget`. */
  watch(wait: BodyWait): void {
    this.waits.add(wait);
    this.timer ??= setInterval(() => this.look(), lookEveryMs);
  }

  forget(wait: BodyWait): void {
    this.waits.delete(wait);
  }

  private look(): void {
    if (this.waits.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    const nowMs = this.clock.livedMs();
    this.waits.forEach((wait) => {
      if (wait.dueMs > nowMs) return;
      this.waits.delete(wait);
      wait.onLate();
    });
  }
}

/** The deadlines of all bodies that this process reads. */
export const bodyDeadlines = new BodyDeadlines(systemClock);
