/** Length of a window and of the slots that it is counted in, in milliseconds. */
export interface WindowSize {
  windowMs: number;
  slotMs: number;
}

/** The window of the contract's tiers: 60 seconds in quarter-second slots. */
export const minuteWindow: WindowSize = { windowMs: 60_000, slotMs: 250 };

/**
 * Counts requests of a window exactly enough to refuse the right one: a ring of slots, so a window of N
 * admits N, and a request leaves it at most one slot later than it should.
 */
export class SlidingWindow {
  private readonly slots: Uint32Array;
  private readonly slotMs: number;
  private newestSlot = 0;
  private total = 0;

  constructor({ windowMs, slotMs }: WindowSize) {
    this.slotMs = slotMs;
    this.slots = new Uint32Array(windowMs / slotMs + 1);
  }

  /** Counts an amount, one request where none is named, unless `limit` were passed. */
  tryAdd(nowMs: number, limit: number, amount = 1): boolean {
    this.advance(Math.floor(nowMs / this.slotMs));
    if (this.total + amount > limit) return false;
    this.total += amount;
    const index = this.newestSlot % this.slots.length;
    this.slots[index] = (this.slots[index] ?? 0) + amount;
    return true;
  }

  /** Requests counted within the window. */
  count(nowMs: number): number {
    this.advance(Math.floor(nowMs / this.slotMs));
    return this.total;
  }

  /** Milliseconds until the oldest counted request leaves the window; 0 when none is counted. */
  oldestLeavesInMs(nowMs: number): number {
    this.advance(Math.floor(nowMs / this.slotMs));
    for (let age = this.slots.length - 1; age >= 0 && this.total > 0; age -= 1) {
      const slot = this.newestSlot - age;
      if (slot >= 0 && (this.slots[slot % this.slots.length] ?? 0) > 0)
        return (slot + this.slots.length) * this.slotMs - nowMs;
    }
    return 0;
  }

  private advance(slot: number): void {
    if (slot <= this.newestSlot) return;
    const size = this.slots.length;
    const steps = Math.min(slot - this.newestSlot, size);
    for (let step = 1; step <= steps; step += 1) {
      const index = (slot - steps + step) % size;
      this.total -= this.slots[index] ?? 0;
      this.slots[index] = 0;
    }
    this.newestSlot = slot;
  }
}
