import type { Clock } from "../platform/kernel/clock.ts";
import { minuteWindow } from "../platform/rate-windows/named-windows.ts";

/** The windows of a caller. */
interface CallerWindows {
  /** The workspace or counter that they belong to. */
  owner: string;
  counters: readonly string[];
  /** The ids of the keys whose windows count the caller's tokens. */
  tokenKeyIds: readonly string[];
}

/** Requests that shared windows counted before they came. */
export interface CountedInAdvance extends CallerWindows {
  /** The slot of the windows in which they are counted. */
  slot: number;
  count: number;
  tokens: number;
}

/** Requests to count in advance, and the tokens that each of them may send. */
export interface WantedCounts {
  count: number;
  tokensEach: number;
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
  /** The tokens that were counted for those requests. */
  tokensLeft: number;
  untilMs: number;
  isAsking: boolean;
  /**
   * The number of the current period, which is as long as a slot, and the requests of this period
   * and of the previous one.
   */
  period: number;
  requests: number;
  requestsBefore: number;
  /** The tokens of these requests. */
  tokens: number;
  tokensBefore: number;
}

/** Callers with fewer requests than this within a slot are counted request by request. */
const requestsMin = 4;
/** More than one process serves within a slot. What does not come is given back when it ends. */
const advanceMax = 1_024;
const noneWanted: WantedCounts = { count: 0, tokensEach: 0 };
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

  /** Notes a request; true where its windows have counted it and its tokens already. */
  take(name: string, windows: () => CallerWindows, tokens = 0): boolean {
    const nowMs = this.clock.monotonicMs();
    const caller = this.callerOf(name, windows);
    if (caller === undefined) return false;
    this.roll(caller, nowMs);
    caller.requests += 1;
    caller.tokens += tokens;
    if (caller.left === 0 || caller.tokensLeft < tokens || nowMs >= caller.untilMs) return false;
    caller.left -= 1;
    caller.tokensLeft -= tokens;
    return true;
  }

  /**
   * Returns the requests to count in advance along with the current one, each with the average
   * tokens of the period before; none for a caller that sends few. Where there are any, the caller
   * of this method has to call `put` afterwards.
   */
  wanted(name: string): WantedCounts {
    const caller = this.callers.get(name);
    if (caller === undefined || caller.isAsking || caller.requestsBefore < requestsMin)
      return noneWanted;
    caller.isAsking = true;
    return {
      count: Math.min(caller.requestsBefore, advanceMax),
      tokensEach: Math.ceil(caller.tokensBefore / caller.requestsBefore),
    };
  }

  /**
   * Adds the requests that the windows counted in a slot, which ends `leftMs` after `askedAtMs`. A
   * count of 0 means that the windows counted none or did not answer.
   */
  put(
    name: string,
    {
      count,
      tokensEach = 0,
      slot,
      leftMs,
      askedAtMs,
    }: { count: number; tokensEach?: number; slot: number; leftMs: number; askedAtMs: number },
  ): void {
    const caller = this.callers.get(name);
    if (caller === undefined) return;
    this.returnUnused(caller);
    Object.assign(caller, {
      isAsking: false,
      left: count,
      tokensLeft: count * tokensEach,
      slot,
      untilMs: askedAtMs + leftMs,
    });
  }

  private roll(caller: Caller, nowMs: number): void {
    const period = Math.floor(nowMs / minuteWindow.slotMs);
    if (period === caller.period) return;
    const isNext = period === caller.period + 1;
    caller.requestsBefore = isNext ? caller.requests : 0;
    caller.tokensBefore = isNext ? caller.tokens : 0;
    caller.requests = 0;
    caller.tokens = 0;
    caller.period = period;
  }

  private returnUnused(caller: Caller): void {
    const { windows, slot, left: count, tokensLeft: tokens } = caller;
    if (count === 0 && tokens === 0) return;
    caller.left = 0;
    caller.tokensLeft = 0;
    this.giveBack({ ...windows, slot, count, tokens });
  }

  private callerOf(name: string, windows: () => CallerWindows): Caller | undefined {
    let caller = this.callers.get(name);
    if (caller === undefined && this.callers.size < callersMax) {
      caller = {
        windows: windows(),
        slot: 0,
        left: 0,
        tokensLeft: 0,
        untilMs: 0,
        isAsking: false,
        period: 0,
        requests: 0,
        requestsBefore: 0,
        tokens: 0,
        tokensBefore: 0,
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
