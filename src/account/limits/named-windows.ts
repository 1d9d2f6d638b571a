import type { Clock } from "../../platform/lib/clock.ts";
import { SlidingWindow, type WindowSize } from "./sliding-window.ts";

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

  /** Counts what came at an earlier wall time, in the order of time, whatever the limit. */
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

  /** Forgets a tenth of the names at once: looking for the first of a map each time costs more than counting. */
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
