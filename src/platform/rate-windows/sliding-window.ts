/** Length of a window and of the slots that it is counted in, in milliseconds. */
export interface WindowSize {
  windowMs: number;
  slotMs: number;
}

/** The window of the contract's tiers: 60 seconds in quarter-second slots. */
export const minuteWindow: WindowSize = { windowMs: 60_000, slotMs: 250 };

/**
 * Counts requests of a window exactly enough to refuse the right one: a ring of slots, so a window
 * of N admits N. The requests of a slot leave the window together, when the last of them is as old
 * as the window.
 */
export class SlidingWindow {
  private readonly slots: Uint32Array;
  /** When the last request of each slot came, in milliseconds after the slot's beginning. */
  private readonly lastOffsetsMs: Uint16Array;
  private readonly windowMs: number;
  private readonly slotMs: number;
  private newestSlot = 0;
  private total = 0;

  constructor({ windowMs, slotMs }: WindowSize) {
    this.windowMs = windowMs;
    this.slotMs = slotMs;
    this.slots = new Uint32Array(windowMs / slotMs + 1);
    this.lastOffsetsMs = new Uint16Array(this.slots.length);
  }

  /** Counts an amount, one request where none is named, unless `limit` were passed. */
  tryAdd(nowMs: number, limit: number, amount = 1): boolean {
    this.advance(nowMs);
    if (this.total + amount > limit) return false;
    this.total += amount;
    const index = this.newestSlot % this.slots.length;
    this.slots[index] = (this.slots[index] ?? 0) + amount;
    const offsetMs = Math.max(0, Math.floor(nowMs) - this.newestSlot * this.slotMs);
    this.lastOffsetsMs[index] = Math.max(this.lastOffsetsMs[index] ?? 0, offsetMs);
    return true;
  }

  /** Requests counted within the window. */
  count(nowMs: number): number {
    this.advance(nowMs);
    return this.total;
  }

  /**
   * Milliseconds until the oldest counted requests leave the window, never more than its length; 0
   * when none is counted.
   */
  oldestLeavesInMs(nowMs: number): number {
    this.advance(nowMs);
    for (let slot = this.oldestSlot; slot <= this.newestSlot && this.total > 0; slot += 1) {
      if (slot >= 0 && (this.slots[slot % this.slots.length] ?? 0) > 0)
        return Math.min(this.leavesAtMs(slot) - nowMs, this.windowMs);
    }
    return 0;
  }

  private get oldestSlot(): number {
    return this.newestSlot - this.slots.length + 1;
  }

  private leavesAtMs(slot: number): number {
    return slot * this.slotMs + (this.lastOffsetsMs[slot % this.slots.length] ?? 0) + this.windowMs;
  }

  private advance(nowMs: number): void {
    const slot = Math.floor(nowMs / this.slotMs);
    if (slot - this.newestSlot >= this.slots.length) this.clearAll();
    else for (let next = this.newestSlot + 1; next <= slot; next += 1) this.clear(next);
    this.newestSlot = Math.max(slot, this.newestSlot);
    // The oldest slot began before the window did; it leaves as soon as its last request is older
    // than the window.
    const oldest = this.oldestSlot;
    if (
      oldest >= 0 &&
      (this.slots[oldest % this.slots.length] ?? 0) > 0 &&
      this.leavesAtMs(oldest) <= nowMs
    )
      this.clear(oldest);
  }

  private clearAll(): void {
    if (this.total === 0) return;
    this.slots.fill(0);
    this.lastOffsetsMs.fill(0);
    this.total = 0;
  }

  private clear(slot: number): void {
    const index = slot % this.slots.length;
    this.total -= this.slots[index] ?? 0;
    this.slots[index] = 0;
    this.lastOffsetsMs[index] = 0;
  }
}
