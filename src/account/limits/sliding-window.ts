const slotMs = 250;
const slotCount = 60_000 / slotMs + 1;

/**
 * Counts requests of the last 60 seconds exactly enough to refuse the right one: a ring of quarter-second
 * slots, so a window of N admits N, and a request leaves it between 60 and 60.25 seconds after it came.
 */
export class SlidingWindow {
  private readonly slots = new Uint32Array(slotCount);
  private newestSlot = 0;
  private total = 0;

  /** Admits one request unless `limit` were passed. */
  tryAdd(nowMs: number, limit: number): boolean {
    this.advance(Math.floor(nowMs / slotMs));
    if (this.total >= limit) return false;
    this.total += 1;
    const index = this.newestSlot % slotCount;
    this.slots[index] = (this.slots[index] ?? 0) + 1;
    return true;
  }

  /** Requests counted within the window. */
  count(nowMs: number): number {
    this.advance(Math.floor(nowMs / slotMs));
    return this.total;
  }

  private advance(slot: number): void {
    if (slot <= this.newestSlot) return;
    const steps = Math.min(slot - this.newestSlot, slotCount);
    for (let step = 1; step <= steps; step += 1) {
      const index = (slot - steps + step) % slotCount;
      this.total -= this.slots[index] ?? 0;
      this.slots[index] = 0;
    }
    this.newestSlot = slot;
  }
}
