import ipaddr from "ipaddr.js";
import type { Clock } from "../kernel/clock.ts";

/** The length of a window, and of the slots that it is counted in, in milliseconds. */
export interface WindowSize {
  windowMs: number;
  slotMs: number;
}

/** The window of the contract's tiers: 60 seconds in quarter-second slots. */
export const minuteWindow: WindowSize = { windowMs: 60_000, slotMs: 250 };

/**
 * Counts the requests of a window exactly, in a ring of slots: a window of N admits N. The requests
 * of a slot leave the window together, when the last of them is as old as the window.
 */
class SlidingWindow {
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

  /** Counts an amount, by default one request, unless that would exceed `limit`. */
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

  /** Returns the requests counted within the window. */
  count(nowMs: number): number {
    this.advance(nowMs);
    return this.total;
  }

  /**
   * Returns the milliseconds until the oldest counted requests leave the window, at most its
   * length; 0 when none is counted.
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
    // The oldest slot began before the window did. It leaves as soon as its last request is older
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

/** Sliding windows of one size, by the name of what they count, such as a key's id. */
export class NamedWindows {
  private readonly windows = new Map<string, SlidingWindow>();
  private readonly namesMax: number;
  private nextSweepMs = 0;

  constructor(
    private readonly clock: Clock,
    private readonly size: WindowSize,
    {
      namesMax = Infinity,
    }: {
      /** The most names at once; beyond it the earliest ones are forgotten. */
      namesMax?: number;
    } = {},
  ) {
    this.namesMax = namesMax;
  }

  /** Counts an amount under a name, unless its window would then exceed `limit`. */
  tryAdd(name: string, { limit, amount = 1 }: { limit: number; amount?: number }): boolean {
    const nowMs = this.clock.nowMs();
    if (nowMs >= this.nextSweepMs) this.sweep(nowMs);
    return this.windowOf(name).tryAdd(nowMs, limit, amount);
  }

  /** Counts what came at an earlier wall time, in chronological order and without a limit. */
  restore(name: string, { atMs, amount }: { atMs: number; amount: number }): void {
    this.windowOf(name).tryAdd(atMs, Infinity, amount);
  }

  /** Returns a window's count, and when the oldest part of it leaves. */
  stateOf(name: string): { count: number; oldestLeavesInMs: number } {
    const nowMs = this.clock.nowMs();
    const window = this.windows.get(name);
    return {
      count: window?.count(nowMs) ?? 0,
      oldestLeavesInMs: window?.oldestLeavesInMs(nowMs) ?? 0,
    };
  }

  /** Forgets what was counted under a name. */
  forget(name: string): void {
    this.windows.delete(name);
  }

  private windowOf(name: string): SlidingWindow {
    let window = this.windows.get(name);
    if (window !== undefined) return window;
    if (this.windows.size >= this.namesMax) this.dropOldest();
    this.windows.set(name, (window = new SlidingWindow(this.size)));
    return window;
  }

  /**
   * Forgets a tenth of the names at once, since finding the first entry of a map each time costs
   * more than counting.
   */
  private dropOldest(): void {
    let left = Math.ceil(this.namesMax / 10);
    for (const name of this.windows.keys()) {
      if ((left -= 1) < 0) return;
      this.windows.delete(name);
    }
  }

  /** Forgets empty windows, so that addresses do not accumulate. */
  private sweep(nowMs: number): void {
    this.nextSweepMs = nowMs + this.size.windowMs;
    for (const [name, window] of this.windows) {
      if (window.count(nowMs) === 0) this.windows.delete(name);
    }
  }
}

/**
 * The 16-bit parts of an IPv6 address that name a subscriber's network. The subscriber chooses the
 * rest (RFC 6177, RFC 8981).
 */
const networkParts = 4;

/**
 * Returns the key that anonymous requests are counted by: an IPv4 address in one spelling, or the
 * /64 network of an IPv6 address, whose owner has any number of addresses.
 */
export function countedAddress(address: string): string {
  if (!address.includes(":") || !ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, networkParts)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}
