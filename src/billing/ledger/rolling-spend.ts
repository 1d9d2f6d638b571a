import { hourMs } from "../../platform/kernel/clock.ts";

/** The hours of the longest window (30 days), and the current hour. */
const hoursKept = 30 * 24 + 1;

/** The hourly spend of one key over the last 30 days, which sums over any shorter window. */
export class RollingSpend {
  private readonly hours = new BigInt64Array(hoursKept);
  private newestHour = 0;
  private cachedWindowHours = 0;
  private cachedSum = 0n;
  /** The sum of all spend so far. */
  total = 0n;

  /**
   * Adds spend at a wall time in milliseconds. Spend that is older than 30 days only counts in the
   * total.
   */
  add(atMs: number, amountNano: bigint): void {
    const hour = Math.floor(atMs / hourMs);
    this.total += amountNano;
    this.advance(hour);
    if (hour <= this.newestHour - hoursKept) return;
    const index = hour % hoursKept;
    this.hours[index] = (this.hours[index] ?? 0n) + amountNano;
    if (hour > this.newestHour - this.cachedWindowHours - 1) this.cachedSum += amountNano;
  }

  /** Returns the nano-USD spent in the last `windowHours` hours and in the current hour. */
  spentWithin(windowHours: number, nowMs: number): bigint {
    const hour = Math.floor(nowMs / hourMs);
    if (hour > this.newestHour || this.cachedWindowHours !== windowHours) {
      this.advance(hour);
      this.cachedWindowHours = windowHours;
      this.cachedSum = this.sum(windowHours);
    }
    return this.cachedSum;
  }

  private sum(windowHours: number): bigint {
    let sum = 0n;
    for (let age = 0; age <= Math.min(windowHours, hoursKept - 1); age += 1) {
      const hour = this.newestHour - age;
      if (hour >= 0) sum += this.hours[hour % hoursKept] ?? 0n;
    }
    return sum;
  }

  private advance(hour: number): void {
    if (hour <= this.newestHour) return;
    const from = Math.max(this.newestHour + 1, hour - hoursKept + 1);
    for (let stale = from; stale <= hour; stale += 1) this.hours[stale % hoursKept] = 0n;
    this.newestHour = hour;
    this.cachedSum = this.sum(this.cachedWindowHours);
  }
}
