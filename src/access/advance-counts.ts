import type { Clock } from "../platform/kernel/clock.ts";
import { minuteWindow } from "../platform/rate-windows/named-windows.ts";

/** The windows of a caller. */
interface CallerWindows {
  /** The workspace or counter that they belong to. */
  owner: string;
  counters: readonly string[];
}

/** Requests that shared windows counted before they came. */
export interface CountedInAdvance extends CallerWindows {
  /** The slot of the windows in which they are counted. */
  slot: number;
  count: number;
}

/** The recent requests of one caller, and those that were counted in advance. */
interface Caller {
  windows: CallerWindows;
  slot: number;
  /**
   * The number of requests that the windows counted and that did not come yet, and the monotonic
   * time until which they may come.
   */
  left: number;
  untilMs: number;
  isAsking: boolean;
  /**
   * The number of the current period, which is as long as a slot, and the requests of this period
   * and of the previous one.
   */
  period: number;
  requests: number;
  requestsBefore: number;
}

/** Callers with fewer requests than this within a slot are counted request by request. */
const requestsMin = 4;
const advanceMax = 64;
/** The number of periods without a request after which a caller is forgotten. */
const idlePeriods = 8;
/** The most callers that are known at once; requests of any others are counted one by one. */
const callersMax = 20_000;

/**
 * Counts requests of busy callers in advance, in the windows that several gateways share, so that
 * most of these requests do not ask the shared server. They count in one slot of the windows and
 * may only come until the slot ends, so a window never admits more than its limit. The rest is
 * given back afterwards.
 */
export class AdvanceCounts {
  private readonly clock: Pick<Clock, "monotonicMs">;
  private readonly giveBack: (unused: CountedInAdvance) => void;
  private readonly callers = new Map<string, Caller>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor({
    clock,
    giveBack,
  }: {
    clock: Pick<Clock, "monotonicMs">;
    /** Called with requests that did not come in time. */
    giveBack(unused: CountedInAdvance): void;
  }) {
    this.clock = clock;
    this.giveBack = giveBack;
  }

  /** Callers that are known. */
  get size(): number {
    return this.callers.size;
  }

  /** Notes a request; true where its windows have counted it already. */
  take(name: string, windows: () => CallerWindows): boolean {
    const nowMs = this.clock.monotonicMs();
    const caller = this.callerOf(name, windows);
    if (caller === undefined) return false;
    this.roll(caller, nowMs);
    caller.requests += 1;
    if (caller.left === 0 || nowMs >= caller.untilMs) return false;
    caller.left -= 1;
    return true;
  }

  /**
   * Returns how many requests to count in advance along with the current one; 0 for a caller that
   * sends few. Otherwise the caller of this method has to call `put` afterwards.
   */
  wanted(name: string): number {
    const caller = this.callers.get(name);
    if (caller === undefined || caller.isAsking || caller.requestsBefore < requestsMin) return 0;
    caller.isAsking = true;
    return Math.min(caller.requestsBefore, advanceMax);
  }

  /**
   * Adds the requests that the windows counted in a slot, which ends `leftMs` after `askedAtMs`. A
   * count of 0 means that the windows counted none or did not answer.
   */
  put(
    name: string,
    {
      count,
      slot,
      leftMs,
      askedAtMs,
    }: { count: number; slot: number; leftMs: number; askedAtMs: number },
  ): void {
    const caller = this.callers.get(name);
    if (caller === undefined) return;
    this.returnUnused(caller);
    Object.assign(caller, { isAsking: false, left: count, slot, untilMs: askedAtMs + leftMs });
  }

  private roll(caller: Caller, nowMs: number): void {
    const period = Math.floor(nowMs / minuteWindow.slotMs);
    if (period === caller.period) return;
    caller.requestsBefore = period === caller.period + 1 ? caller.requests : 0;
    caller.requests = 0;
    caller.period = period;
  }

  private returnUnused(caller: Caller): void {
    const { windows, slot, left: count } = caller;
    if (count === 0) return;
    caller.left = 0;
    this.giveBack({ ...windows, slot, count });
  }

  private callerOf(name: string, windows: () => CallerWindows): Caller | undefined {
    let caller = this.callers.get(name);
    if (caller === undefined && this.callers.size < callersMax) {
      caller = {
        windows: windows(),
        slot: 0,
        left: 0,
        untilMs: 0,
        isAsking: false,
        period: 0,
        requests: 0,
        requestsBefore: 0,
      };
      this.callers.set(name, caller);
      this.timer ??= setInterval(() => this.sweep(), minuteWindow.slotMs).unref();
    }
    return caller;
  }

  /** Gives back the requests that did not come in time, and forgets idle callers. */
  private sweep(): void {
    const nowMs = this.clock.monotonicMs();
    const idleBefore = Math.floor(nowMs / minuteWindow.slotMs) - idlePeriods;
    for (const [name, caller] of this.callers) {
      if (nowMs >= caller.untilMs) this.returnUnused(caller);
      if (caller.period < idleBefore && !caller.isAsking) this.callers.delete(name);
    }
    if (this.callers.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
