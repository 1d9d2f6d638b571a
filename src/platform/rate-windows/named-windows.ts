import ipaddr from "ipaddr.js";
import type { Clock } from "../kernel/clock.ts";
import { SlidingWindow, type WindowSize, minuteWindow } from "./sliding-window.ts";

/** Sliding windows of one size by the name of what they count, such as a key's id. */
export class NamedWindows {
  private readonly windows = new Map<string, SlidingWindow>();
  private readonly clock: Clock;
  private readonly size: WindowSize;
  private readonly namesMax: number;
  private nextSweepMs = 0;

  constructor(
    clock: Clock,
    size: WindowSize,
    {
      namesMax = Infinity,
    }: {
      /** Names at once; beyond them those that came first are forgotten. */
      namesMax?: number;
    } = {},
  ) {
    this.clock = clock;
    this.size = size;
    this.namesMax = namesMax;
  }

  /** Counts an amount under a name, unless its window would then count more than `limit`. */
  tryAdd(name: string, { limit, amount = 1 }: { limit: number; amount?: number }): boolean {
    const nowMs = this.clock.nowMs();
    if (nowMs >= this.nextSweepMs) this.sweep(nowMs);
    return this.windowOf(name).tryAdd(nowMs, limit, amount);
  }

  /** Counts what came at an earlier wall time, in the order of time, without a limit. */
  restore(name: string, { atMs, amount }: { atMs: number; amount: number }): void {
    this.windowOf(name).tryAdd(atMs, Infinity, amount);
  }

  /** What a window counts, and when the oldest of it leaves. */
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
   * Forgets a tenth of the names at once: looking for the first of a map each time costs more than
   * counting.
   */
  private dropOldest(): void {
    let left = Math.ceil(this.namesMax / 10);
    for (const name of this.windows.keys()) {
      if ((left -= 1) < 0) return;
      this.windows.delete(name);
    }
  }

  /** Forgets windows that count nothing any more, so that addresses do not pile up. */
  private sweep(nowMs: number): void {
    this.nextSweepMs = nowMs + this.size.windowMs;
    for (const [name, window] of this.windows) {
      if (window.count(nowMs) === 0) this.windows.delete(name);
    }
  }
}

/** Counts the tokens of the last 60 seconds by key, for keys with a ceiling (`tpm`). */
export class TokenCounter {
  private readonly windows: NamedWindows;

  constructor(clock: Clock) {
    this.windows = new NamedWindows(clock, minuteWindow);
  }

  /** Counts what a request is going to send, unless the key's ceiling would be passed. */
  tryReserve(keyId: string, { tokens, perMinute }: { tokens: number; perMinute: number }): boolean {
    return this.windows.tryAdd(keyId, { limit: perMinute, amount: tokens });
  }

  /** Counts tokens that were used, also above the ceiling: an answer is as long as it is. */
  add(keyId: string, tokens: number): void {
    if (tokens > 0) this.windows.tryAdd(keyId, { limit: Infinity, amount: tokens });
  }
}

/**
 * Bits of an IPv6 address that name a subscriber's network; the rest is theirs to choose (RFC 6177,
 * RFC 8981).
 */
const networkParts = 4;

/**
 * What anonymous requests are counted by: an IPv4 address, however it is written, or the /64
 * network of an IPv6 address, whose owner has as many addresses as it likes.
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
