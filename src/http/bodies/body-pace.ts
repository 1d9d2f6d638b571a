import { earnedMs, graceMs, savedMsMax } from "./body-deadlines.ts";

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
