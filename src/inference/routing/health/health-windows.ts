import type { Clock } from "../../../platform/kernel/clock.ts";
import { RetryBudget } from "./retry-budget.ts";
import { RollingDistribution } from "./rolling-distribution.ts";
import { RollingCounts } from "./rolling-counts.ts";

/**
 * The most pairs of model and provider that are measured at once. Beyond it, the pair without
 * traffic for longest is forgotten.
 */
const pairsMax = 1_024;

/** A message between gateways about an outage: it was seen, or is over. */
export interface OutageNews {
  said: "seen" | "over";
  providerId: string;
  /** Absent where the outage concerns the whole provider. */
  modelId?: string | undefined;
}

/**
 * The recent health of each provider, and of each model at it: outages of the last 30 seconds, and
 * error rates and percentiles of the last five minutes. Recording takes constant time, and memory
 * is bounded.
 */
export class HealthWindows {
  private readonly providers = new Map<string, ProviderWindows>();
  private pairs = 0;
  private moments = 0;
  private announce: ((news: OutageNews) => void) | undefined;
  /** Returns the most severe state of a provider, as the health service reports it. */
  readonly stateOf: StateLookup;

  constructor(
    private readonly clock: Clock,
    stateOf: StateLookup = () => undefined,
  ) {
    this.stateOf = stateOf;
  }

  recordSuccess(providerId: string, sample?: HealthSample): void {
    const nowMs = this.clock.monotonicMs();
    const windows = this.windowsOf(providerId);
    windows.own.count(nowMs, false);
    windows.retries.count(nowMs, false);
    const window =
      sample?.model === undefined ? windows.own : this.modelWindow(windows, sample.model);
    if (window !== windows.own) window.count(nowMs, false);
    if (sample !== undefined) window.measure(sample, nowMs);
    if (this.announce !== undefined) this.tell(windows, { modelId: sample?.model, nowMs });
  }

  /** Counts a failure of the provider's own, so not a caller's mistake or a client that left. */
  recordFailure(providerId: string, modelId?: string): void {
    const nowMs = this.clock.monotonicMs();
    const windows = this.windowsOf(providerId);
    windows.own.count(nowMs, true);
    windows.retries.count(nowMs, true);
    if (modelId !== undefined) this.modelWindow(windows, modelId).count(nowMs, true);
    if (this.announce !== undefined) this.tell(windows, { modelId, nowMs });
  }

  /** Starts to report outages to other gateways. */
  share(announce: (news: OutageNews) => void): void {
    this.announce = announce;
  }

  /**
   * Accepts another gateway's report of an outage. It holds for as long as an outage counts, or
   * until the provider answers here.
   */
  receive({ said, providerId, modelId }: OutageNews): void {
    const nowMs = this.clock.monotonicMs();
    const windows = this.windowsOf(providerId);
    const window = modelId === undefined ? windows.own : this.modelWindow(windows, modelId);
    if (said === "over") return window.dropReport();
    window.acceptReport(nowMs);
    if (window !== windows.own) windows.own.checkModels(nowMs);
  }

  /**
   * Returns whether the provider, or the model at it, had a significant outage in the last 30
   * seconds.
   */
  hasOutage(providerId: string, modelId?: string): boolean {
    const provider = this.providers.get(providerId);
    return provider !== undefined && this.moment().hasOutage(provider, modelId);
  }

  /** Returns the present health, for a plan that asks about many routes. */
  moment(): HealthMoment {
    this.moments += 1;
    return new HealthMoment(this.stateOf, {
      number: this.moments,
      nowMs: this.clock.monotonicMs(),
    });
  }

  /** Returns whether the provider has retry budget for a request that another candidate failed. */
  mayRetry(providerId: string): boolean {
    return this.providers.get(providerId)?.retries.mayRetry(this.clock.monotonicMs()) ?? true;
  }

  /**
   * Returns the attempts and failures of five minutes at a provider, or of one model at it;
   * undefined without traffic.
   */
  errorRate(providerId: string, modelId?: string): ErrorRate | undefined {
    const provider = this.providers.get(providerId);
    return provider && this.moment().errorRate(provider, modelId);
  }

  /**
   * Returns the latency to the first token and the throughput of a model at a provider. Without
   * traffic nothing in it is known.
   */
  measuresOf(providerId: string, modelId: string): RouteMeasures {
    return this.moment().measuresOf(this.providers.get(providerId), modelId);
  }

  /** Returns what is remembered of a provider: the same object for as long as the process lives. */
  windowsOf(providerId: string): ProviderWindows {
    let windows = this.providers.get(providerId);
    if (windows === undefined)
      this.providers.set(
        providerId,
        (windows = new ProviderWindows(providerId, this.clock.monotonicMs())),
      );
    return windows;
  }

  private tell(
    { id: providerId, own, models }: ProviderWindows,
    { modelId, nowMs }: { modelId: string | undefined; nowMs: number },
  ): void {
    const said = own.news(nowMs);
    if (said !== undefined) this.announce?.({ said, providerId });
    const modelOutage = modelId === undefined ? undefined : models.get(modelId)?.news(nowMs);
    if (modelOutage !== undefined) this.announce?.({ said: modelOutage, providerId, modelId });
  }

  private modelWindow({ models }: ProviderWindows, modelId: string): RecentWindow {
    let window = models.get(modelId);
    if (window !== undefined) return window;
    if (this.pairs >= pairsMax) this.forgetQuietest();
    models.set(modelId, (window = new RecentWindow()));
    this.pairs += 1;
    return window;
  }

  private forgetQuietest(): void {
    let quietest: { models: Map<string, RecentWindow>; id: string; lastMs: number } | undefined;
    for (const { models } of this.providers.values()) {
      for (const [id, { lastMs }] of models) {
        if (quietest === undefined || lastMs < quietest.lastMs) quietest = { models, id, lastMs };
      }
    }
    if (quietest?.models.delete(quietest.id)) this.pairs -= 1;
  }
}

/** The failures and attempts of the last five minutes. */
export interface ErrorRate {
  attempts: number;
  failures: number;
}

/**
 * The health at one moment. The clock is read once, and facts about a whole provider are computed
 * once, however many of its routes a plan looks at.
 */
class HealthMoment {
  private readonly number: number;
  private readonly nowMs: number;

  /** `number` has to differ from that of every earlier moment. */
  constructor(
    private readonly stateLookup: StateLookup,
    { number, nowMs }: { number: number; nowMs: number },
  ) {
    this.number = number;
    this.nowMs = nowMs;
  }

  /** Returns the most severe state of a provider; undefined for a healthy one. */
  stateOf(provider: ProviderWindows): ProviderState | undefined {
    return this.see(provider).state;
  }

  /**
   * Returns whether the provider, or the model at it, had a significant outage in the last 30
   * seconds.
   */
  hasOutage(provider: ProviderWindows, modelId?: string): boolean {
    const { hasOutage, failedLately } = this.see(provider);
    if (hasOutage || !failedLately || modelId === undefined) return hasOutage;
    return provider.models.get(modelId)?.hasOutage(this.nowMs) ?? false;
  }

  /** Returns whether the provider is in any state, or it or the model at it has an outage. */
  isTroubled(provider: ProviderWindows, modelId: string): boolean {
    return this.see(provider).state !== undefined || this.hasOutage(provider, modelId);
  }

  /**
   * Returns the attempts and failures of five minutes at a provider, or of one model at it;
   * undefined without traffic.
   */
  errorRate({ own, models }: ProviderWindows, modelId?: string): ErrorRate | undefined {
    const rate = (modelId === undefined ? own : models.get(modelId))?.rate;
    const attempts = rate?.attempts(this.nowMs) ?? 0;
    return rate === undefined || attempts === 0
      ? undefined
      : { attempts, failures: rate.failures(this.nowMs) };
  }

  /**
   * Returns the latency to the first token and the throughput of a model at a provider. Without
   * traffic nothing in it is known.
   */
  measuresOf(provider: ProviderWindows | undefined, modelId: string): RouteMeasures {
    const model = provider?.models.get(modelId);
    return new RouteMeasures({
      firstTokenMs: model?.firstTokenMs ?? provider?.own.firstTokenMs,
      tokensPerSecond: model?.tokensPerSecond ?? provider?.own.tokensPerSecond,
      nowMs: this.nowMs,
    });
  }

  private see({ id, own, seen }: ProviderWindows): ProviderWindows["seen"] {
    if (seen.moment === this.number) return seen;
    seen.moment = this.number;
    seen.state = this.stateLookup(id);
    seen.failedLately = own.failedLately(this.nowMs);
    seen.hasOutage = seen.failedLately && own.hasOutage(this.nowMs);
    return seen;
  }
}

/** A percentile as a share, such as 0.9, and the bound that it has to keep. */
export interface Cutoff {
  share: number;
  bound: number;
}

/** The measured speed of a route at one moment. */
class RouteMeasures {
  private readonly latency: RollingDistribution | undefined;
  private readonly throughput: RollingDistribution | undefined;
  private readonly nowMs: number;

  constructor(known: {
    firstTokenMs: RollingDistribution | undefined;
    tokensPerSecond: RollingDistribution | undefined;
    nowMs: number;
  }) {
    this.latency = known.firstTokenMs;
    this.throughput = known.tokensPerSecond;
    this.nowMs = known.nowMs;
  }

  /** Returns the milliseconds in which this share of the answers began; undefined if unmeasured. */
  firstTokenMs(share: number): number | undefined {
    return this.latency?.at(share, this.nowMs);
  }

  /** Returns the tokens per second this share of the answers reached; undefined if unmeasured. */
  tokensPerSecond(share: number): number | undefined {
    return this.throughput?.at(1 - share, this.nowMs);
  }

  /** Returns whether a bound in milliseconds is kept. An unmeasured route keeps every bound. */
  keepsLatency({ share, bound }: Cutoff): boolean {
    return this.latency?.isAtMost(bound, { share, nowMs: this.nowMs }) ?? true;
  }

  /**
   * Returns whether a bound in tokens per second is kept. An unmeasured route keeps every bound.
   */
  keepsThroughput({ share, bound }: Cutoff): boolean {
    return this.throughput?.isAtLeast(bound, { share, nowMs: this.nowMs }) ?? true;
  }
}

/** The facts that a plan read about a provider at its moment. */
interface Seen {
  /** The moment's number; 0 where no plan has looked yet. */
  moment: number;
  state: ProviderState | undefined;
  /**
   * Whether anything failed within the outage window. Where nothing did, no model at the provider
   * has an outage either.
   */
  failedLately: boolean;
  hasOutage: boolean;
}

/** All that is remembered of a provider. */
class ProviderWindows {
  readonly own = new RecentWindow();
  readonly retries: RetryBudget;
  readonly models = new Map<string, RecentWindow>();
  /** Kept here because a map in each plan would look every provider up by its id again. */
  readonly seen: Seen = { moment: 0, state: undefined, failedLately: false, hasOutage: false };

  constructor(
    readonly id: string,
    nowMs: number,
  ) {
    this.retries = new RetryBudget(nowMs);
  }
}

/** Seconds for which an outage counts (contract, rule 1 of the provider object). */
const outageWindowSeconds = 30;
/**
 * The fewest failures of an outage: a single one may be chance, and two within half a minute are a
 * pattern.
 */
const outageFailuresMin = 2;
/**
 * The smallest share of failures of an outage: below it most requests still succeed, so the route
 * stays primary.
 */
const outageFailureShareMin = 0.5;
/** Error rates cover five minutes, as percentiles do. */
const rateWindow = { cells: 10, cellMs: 30_000 };
/** The smallest values that are distinguished: below them, providers do not differ noticeably. */
const smallest = { firstTokenMs: 1, tokensPerSecond: 0.1 };

/** The measurements of one answer. A whole answer has no first token. */
export interface HealthSample {
  firstTokenMs?: number;
  tokensPerSecond?: number;
  /**
   * The catalog id of the model that answered. A sample without one counts for all models of the
   * provider.
   */
  model?: string;
}

/** Milliseconds between reports of an outage that lasts. */
const tellAgainMs = 1_000;

/** The recent health of a provider, or of one model at it. */
class RecentWindow {
  readonly outage = new RollingCounts({ cells: outageWindowSeconds, cellMs: 1_000 });
  readonly rate = new RollingCounts(rateWindow);
  firstTokenMs: RollingDistribution | undefined;
  tokensPerSecond: RollingDistribution | undefined;
  lastMs = 0;
  private lastFailureMs = Number.NEGATIVE_INFINITY;
  /** When this gateway last reported its outage. */
  private reportedMs = Number.NEGATIVE_INFINITY;
  /** Until when another gateway's report of an outage holds. */
  private reportHoldsUntilMs = Number.NEGATIVE_INFINITY;

  count(nowMs: number, failed: boolean): void {
    this.lastMs = nowMs;
    if (failed) this.lastFailureMs = nowMs;
    else this.dropReport();
    this.outage.record(nowMs, failed);
    this.rate.record(nowMs, failed);
  }

  measure({ firstTokenMs, tokensPerSecond }: HealthSample, nowMs: number): void {
    if (firstTokenMs !== undefined)
      (this.firstTokenMs ??= new RollingDistribution(smallest.firstTokenMs)).record(
        firstTokenMs,
        nowMs,
      );
    if (tokensPerSecond !== undefined) {
      (this.tokensPerSecond ??= new RollingDistribution(smallest.tokensPerSecond)).record(
        tokensPerSecond,
        nowMs,
      );
    }
  }

  /**
   * Returns whether anything failed within the outage window. Cheap, because planning asks it of
   * every route and most providers are healthy.
   */
  failedLately(nowMs: number): boolean {
    return nowMs - this.lastFailureMs <= (outageWindowSeconds + 1) * 1_000;
  }

  hasOutage(nowMs: number): boolean {
    return nowMs < this.reportHoldsUntilMs || this.seesOutage(nowMs);
  }

  /** Accepts another gateway's report of an outage. */
  acceptReport(nowMs: number): void {
    this.lastMs = nowMs;
    this.reportHoldsUntilMs = nowMs + outageWindowSeconds * 1_000;
    this.checkModels(nowMs);
  }

  dropReport(): void {
    this.reportHoldsUntilMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * Makes plans check each model of a provider, after another gateway reported an outage of one of
   * them.
   */
  checkModels(nowMs: number): void {
    this.lastFailureMs = nowMs;
  }

  /** Returns what to report to other gateways after an attempt; undefined where nothing changed. */
  news(nowMs: number): "seen" | "over" | undefined {
    const wasReported = this.reportedMs > Number.NEGATIVE_INFINITY;
    if (this.seesOutage(nowMs)) {
      if (nowMs - this.reportedMs < tellAgainMs) return undefined;
      this.reportedMs = nowMs;
      return "seen";
    }
    this.reportedMs = Number.NEGATIVE_INFINITY;
    return wasReported ? "over" : undefined;
  }

  private seesOutage(nowMs: number): boolean {
    if (!this.failedLately(nowMs)) return false;
    const failures = this.outage.failures(nowMs);
    return (
      failures >= outageFailuresMin &&
      failures / this.outage.attempts(nowMs) >= outageFailureShareMin
    );
  }
}

/**
 * A treatment of a provider that differs from others' (contract, "Health and routing states";
 * docs/health.md says when).
 */
export type ProviderState = "deprioritized" | "excluded" | "quarantined" | "budget_exhausted";

/** Returns the most severe state of a provider; undefined for a healthy one. */
export type StateLookup = (providerId: string) => ProviderState | undefined;

/** A state in which a provider is not used. */
export type BarringState = Exclude<ProviderState, "deprioritized">;

/** Returns the state where it bars a provider from use. A deprioritized provider is used last. */
export const barring = (state: ProviderState | undefined): BarringState | undefined =>
  state === "deprioritized" ? undefined : state;

export type { HealthMoment, ProviderWindows };
