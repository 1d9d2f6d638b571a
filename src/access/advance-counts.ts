import type { Clock } from "../platform/kernel/clock.ts";
import { minuteWindow } from "../platform/rate-windows/named-windows.ts";

/** Requests that shared windows have counted before they came. */
export interface CountedInAdvance {
  /** The windows' counters. */
  counters: readonly string[];
  /** The slot of the windows that they are counted in. */
  slot: number;
  count: number;
}

/** What is known of the requests of one caller. */
interface Caller {
  counters: readonly string[];
  slot: number;
  /** Requests that windows have counted and that did not come yet, and until when they may. */
  left: number;
  untilMs: number;
  isAsking: boolean;
  /** Requests of this period and of the one before it, each as long as a slot. */
  period: number;
  requests: number;
  requestsBefore: number;
}

/** Fewer requests than this within a slot are counted one by one. */
const requestsMin = 4;
const advanceMax = 64;
/** Periods without a request after which a caller is forgotten. */
const idlePeriods = 8;
/** Callers that are known at once; those beyond it are counted one by one. */
const callersMax = 20_000;

/**
 * Requests of callers that send many, counted ahead of them in the windows that several gateways
 * share, so that most of them ask the shared server nothing. They are counted only within a slot of
 * the windows and are used only until it ends, so that a window admits no more than its number; what
 * is left then is given back.
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
  take(name: string, counters: () => readonly string[]): boolean {
    const nowMs = this.clock.monotonicMs();
    const caller = this.callerOf(name, counters);
    if (caller === undefined) return false;
    this.roll(caller, nowMs);
    caller.requests += 1;
    if (caller.left === 0 || nowMs >= caller.untilMs) return false;
    caller.left -= 1;
    return true;
  }

  /**
   * How many requests to count ahead beside the one that asks; 0 for a caller that sends few. `put`
   * has to follow where there are any.
   */
  wanted(name: string): number {
    const caller = this.callers.get(name);
    if (caller === undefined || caller.isAsking || caller.requestsBefore < requestsMin) return 0;
    caller.isAsking = true;
    return Math.min(caller.requestsBefore, advanceMax);
  }

  /**
   * Adds what the windows have counted in a slot which ends that long after they were asked; nothing
   * where they have not answered.
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
    const { counters, slot, left: count } = caller;
    if (count === 0) return;
    caller.left = 0;
    this.giveBack({ counters, slot, count });
  }

  private callerOf(name: string, counters: () => readonly string[]): Caller | undefined {
    let caller = this.callers.get(name);
    if (caller === undefined && this.callers.size < callersMax) {
      caller = {
        counters: counters(),
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

  /** Gives back what did not come in time, and forgets callers that send nothing any more. */
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
