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

/** How long a body that is read in pieces may still take. Times are of any one clock. */
export class BodyPace {
  /** When the body has to be complete, unless more of it comes before. */
  dueMs: number;

  constructor(startedMs: number) {
    this.dueMs = startedMs + graceMs;
  }

  /** Adds the time that the bytes of a piece have earned. */
  came(bytes: number, nowMs: number): void {
    this.dueMs = Math.min(this.dueMs + earnedMs(bytes), nowMs + savedMsMax);
  }
}
