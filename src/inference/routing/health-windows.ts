import type { Clock } from "../../platform/kernel/clock.ts";
import { RollingDistribution, RollingCounts } from "./rolling-distribution.ts";

/**
 * Models at providers that are measured at once; beyond it the one that was quiet for longest is
 * forgotten.
 */
const pairsMax = 1_024;

/** What one gateway tells others of an outage that it sees: that it begins or lasts, or is over. */
export interface OutageNews {
  said: "seen" | "over";
  providerId: string;
  /** Absent where it is the whole provider's. */
  modelId?: string | undefined;
}

/**
 * What was seen of each provider, and of each model at it, lately: outages of the last 30 seconds,
 * error rates and percentiles of the last five minutes. Recording is constant work and memory is
 * bounded.
 */
export class HealthWindows {
  private readonly providers = new Map<string, ProviderWindows>();
  private readonly clock: Clock;
  private pairs = 0;
  private moments = 0;
  private tellOthers: ((news: OutageNews) => void) | undefined;
  /** The gravest state of a provider, as the health of the whole service has it. */
  readonly stateOf: StateLookup;

  constructor(clock: Clock, stateOf: StateLookup = () => undefined) {
    this.clock = clock;
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
    if (this.tellOthers !== undefined) this.tell(windows, { modelId: sample?.model, nowMs });
  }

  /**
   * Counts a failure that is the provider's own: not a caller's mistake, not a client that left.
   */
  recordFailure(providerId: string, modelId?: string): void {
    const nowMs = this.clock.monotonicMs();
    const windows = this.windowsOf(providerId);
    windows.own.count(nowMs, true);
    windows.retries.count(nowMs, true);
    if (modelId !== undefined) this.modelWindow(windows, modelId).count(nowMs, true);
    if (this.tellOthers !== undefined) this.tell(windows, { modelId, nowMs });
  }

  /** Tells other gateways of outages from now on. */
  share(tellOthers: (news: OutageNews) => void): void {
    this.tellOthers = tellOthers;
  }

  /**
   * Takes another gateway's word for an outage, for as long as an outage counts, or until the
   * provider answers here.
   */
  hear({ said, providerId, modelId }: OutageNews): void {
    const nowMs = this.clock.monotonicMs();
    const windows = this.windowsOf(providerId);
    const window = modelId === undefined ? windows.own : this.modelWindow(windows, modelId);
    if (said === "over") return window.disbelieve();
    window.believe(nowMs);
    if (window !== windows.own) windows.own.lookCloser(nowMs);
  }

  /** Whether the provider, or the model at it, had a significant outage in the last 30 seconds. */
  hasOutage(providerId: string, modelId?: string): boolean {
    const provider = this.providers.get(providerId);
    return provider !== undefined && this.moment().hasOutage(provider, modelId);
  }

  /** What is known at present, for a plan that asks of many routes. */
  moment(): HealthMoment {
    this.moments += 1;
    return new HealthMoment(this.stateOf, {
      number: this.moments,
      nowMs: this.clock.monotonicMs(),
    });
  }

  /** Whether a request that another candidate failed may be sent to the provider. */
  mayRetry(providerId: string): boolean {
    return this.providers.get(providerId)?.retries.mayRetry(this.clock.monotonicMs()) ?? true;
  }

  /**
   * Attempts and failures over five minutes of a provider, or of one model at it; undefined without
   * traffic.
   */
  errorRate(providerId: string, modelId?: string): ErrorRate | undefined {
    const provider = this.providers.get(providerId);
    return provider && this.moment().errorRate(provider, modelId);
  }

  /**
   * Latency to the first token and throughput of a model at a provider; nothing in it is known
   * without traffic.
   */
  measuresOf(providerId: string, modelId: string): RouteMeasures {
    return this.moment().measuresOf(this.providers.get(providerId), modelId);
  }

  /** What is remembered of a provider, the same object for as long as the process lives. */
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
    if (said !== undefined) this.tellOthers?.({ said, providerId });
    const saidOfModel = modelId === undefined ? undefined : models.get(modelId)?.news(nowMs);
    if (saidOfModel !== undefined) this.tellOthers?.({ said: saidOfModel, providerId, modelId });
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

/** Failures and attempts of the last five minutes. */
export interface ErrorRate {
  attempts: number;
  failures: number;
}

/**
 * Health at one moment: the clock is read once, and what concerns all models of a provider is found
 * out once, however many of its routes a plan looks at.
 */
export class HealthMoment {
  private readonly stateLookup: StateLookup;
  private readonly number: number;
  private readonly nowMs: number;

  /** `number` is another than that of every moment before. */
  constructor(stateLookup: StateLookup, { number, nowMs }: { number: number; nowMs: number }) {
    this.stateLookup = stateLookup;
    this.number = number;
    this.nowMs = nowMs;
  }

  /** The gravest state of a provider; undefined for one that is well. */
  stateOf(provider: ProviderWindows): ProviderState | undefined {
    return this.see(provider).state;
  }

  /** Whether the provider, or the model at it, had a significant outage in the last 30 seconds. */
  hasOutage(provider: ProviderWindows, modelId?: string): boolean {
    const { hasOutage, failedLately } = this.see(provider);
    if (hasOutage || !failedLately || modelId === undefined) return hasOutage;
    return provider.models.get(modelId)?.hasOutage(this.nowMs) ?? false;
  }

  /** Whether the provider is in any state, or has an outage, or the model at it has. */
  isTroubled(provider: ProviderWindows, modelId: string): boolean {
    return this.see(provider).state !== undefined || this.hasOutage(provider, modelId);
  }

  /**
   * Attempts and failures over five minutes of a provider, or of one model at it; undefined without
   * traffic.
   */
  errorRate({ own, models }: ProviderWindows, modelId?: string): ErrorRate | undefined {
    const rate = (modelId === undefined ? own : models.get(modelId))?.rate;
    const attempts = rate?.attempts(this.nowMs) ?? 0;
    return rate === undefined || attempts === 0
      ? undefined
      : { attempts, failures: rate.failures(this.nowMs) };
  }

  /**
   * Latency to the first token and throughput of a model at a provider; nothing in it is known
   * without traffic.
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

/** A percentile's share of requests, such as 0.9, and the bound that it has to keep. */
export interface Cutoff {
  share: number;
  bound: number;
}

/** What is known of a route's speed at one moment. */
export class RouteMeasures {
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

  /** Milliseconds within which a share of the answers began; undefined when nothing is known. */
  firstTokenMs(share: number): number | undefined {
    return this.latency?.at(share, this.nowMs);
  }

  /** Tokens a second that a share of the answers reached; undefined when nothing is known. */
  tokensPerSecond(share: number): number | undefined {
    return this.throughput?.at(1 - share, this.nowMs);
  }

  /** Whether a bound in milliseconds is kept; what is not known keeps every bound. */
  keepsLatency({ share, bound }: Cutoff): boolean {
    return this.latency?.isAtMost(bound, { share, nowMs: this.nowMs }) ?? true;
  }

  /** Whether a bound in tokens a second is kept; what is not known keeps every bound. */
  keepsThroughput({ share, bound }: Cutoff): boolean {
    return this.throughput?.isAtLeast(bound, { share, nowMs: this.nowMs }) ?? true;
  }
}

/** What a plan found of a provider at its moment. */
interface Seen {
  /** The moment's number; 0 where no plan has looked yet. */
  moment: number;
  state: ProviderState | undefined;
  /**
   * Anything failed within the window of outages; where nothing did, no model at the provider has
   * an outage either.
   */
  failedLately: boolean;
  hasOutage: boolean;
}

/** Everything that is remembered of a provider. */
export class ProviderWindows {
  readonly id: string;
  readonly own = new RecentWindow();
  readonly retries: RetryBudget;
  readonly models = new Map<string, RecentWindow>();
  /**
   * Kept here rather than in a map of each plan, which would look every provider up by its id
   * again.
   */
  readonly seen: Seen = { moment: 0, state: undefined, failedLately: false, hasOutage: false };

  constructor(id: string, nowMs: number) {
    this.id = id;
    this.retries = new RetryBudget(nowMs);
  }
}

/** Seconds over which an outage counts (contract, rule 1 of the provider object). */
const outageWindowSeconds = 30;
/** A single failure may be chance; two within half a minute are a pattern. */
const outageFailuresMin = 2;
/**
 * Below one failure in two attempts most requests still get through, so the route stays primary.
 */
const outageFailureShareMin = 0.5;
/** Error rates are over five minutes, as percentiles are. */
const rateWindow = { cells: 10, cellMs: 30_000 };
/** Below these no provider differs noticeably from another. */
const smallest = { firstTokenMs: 1, tokensPerSecond: 0.1 };

/** What one answer showed; a whole answer shows no first token. */
export interface HealthSample {
  firstTokenMs?: number;
  tokensPerSecond?: number;
  /**
   * Catalog id of the model that answered. Samples without one stand for all models of the
   * provider.
   */
  model?: string;
}

/** How often an outage that lasts is said again. */
const tellAgainMs = 1_000;

/** What is remembered of a provider, or of one model at it. */
export class RecentWindow {
  readonly outage = new RollingCounts({ cells: outageWindowSeconds, cellMs: 1_000 });
  readonly rate = new RollingCounts(rateWindow);
  firstTokenMs: RollingDistribution | undefined;
  tokensPerSecond: RollingDistribution | undefined;
  lastMs = 0;
  private lastFailureMs = Number.NEGATIVE_INFINITY;
  /** When an outage that is seen here was said last. */
  private toldMs = Number.NEGATIVE_INFINITY;
  /** Until when another gateway's word for an outage holds. */
  private heardUntilMs = Number.NEGATIVE_INFINITY;

  count(nowMs: number, failed: boolean): void {
    this.lastMs = nowMs;
    if (failed) this.lastFailureMs = nowMs;
    else this.disbelieve();
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
   * Whether anything failed within the window of outages; most providers are well, and planning
   * asks of every route.
   */
  failedLately(nowMs: number): boolean {
    return nowMs - this.lastFailureMs <= (outageWindowSeconds + 1) * 1_000;
  }

  hasOutage(nowMs: number): boolean {
    return nowMs < this.heardUntilMs || this.seesOutage(nowMs);
  }

  /** Takes another gateway's word for an outage. */
  believe(nowMs: number): void {
    this.lastMs = nowMs;
    this.heardUntilMs = nowMs + outageWindowSeconds * 1_000;
    this.lookCloser(nowMs);
  }

  disbelieve(): void {
    this.heardUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Makes plans look at the models of a provider, of which one has an outage elsewhere. */
  lookCloser(nowMs: number): void {
    this.lastFailureMs = nowMs;
  }

  /** What there is to say to others after an attempt; undefined where there is nothing new. */
  news(nowMs: number): "seen" | "over" | undefined {
    const wasTold = this.toldMs > Number.NEGATIVE_INFINITY;
    if (this.seesOutage(nowMs)) {
      if (nowMs - this.toldMs < tellAgainMs) return undefined;
      this.toldMs = nowMs;
      return "seen";
    }
    this.toldMs = Number.NEGATIVE_INFINITY;
    return wasTold ? "over" : undefined;
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

/** The numbers of the budget; docs/health.md shows the same. */
export const retryBudgetLimits = {
  /**
   * Fallbacks that a provider may fail at once before it gets no more of them: ten seconds' worth
   * of what comes back (as Finagle's retry budgets have it), so that single clients which are tried
   * out never meet it.
   */
  atOnce: 100,
  /** What comes back by itself, so that a provider that is never asked first is asked again. */
  perSecond: 10,
} as const;

const tokensMax: number = retryBudgetLimits.atOnce;
const tokensPerMs = retryBudgetLimits.perSecond / 1_000;

/**
 * How many fallbacks a provider may get, so that an outage is not multiplied: the first attempt of
 * a request is always made, the next ones only at providers with something left. Each failure, of a
 * first attempt too, takes a token, and each answer gives one back: a provider that answers every
 * second
 * request keeps its budget, one that fails more often gets ten fallbacks a second. What was under
 * way when
 * the last token went is owed when it fails, too, so that many requests at once get no more than a
 * few.
 */
export class RetryBudget {
  private tokens = tokensMax;
  private countedMs: number;

  constructor(nowMs: number) {
    this.countedMs = nowMs;
  }

  /** Whether another provider's failure may be followed by an attempt here. */
  mayRetry(nowMs: number): boolean {
    this.refill(nowMs);
    return this.tokens >= 1;
  }

  count(nowMs: number, failed: boolean): void {
    this.refill(nowMs);
    this.tokens = failed
      ? Math.max(-tokensMax, this.tokens - 1)
      : Math.min(tokensMax, this.tokens + 1);
  }

  private refill(nowMs: number): void {
    this.tokens = Math.min(
      tokensMax,
      this.tokens + Math.max(0, nowMs - this.countedMs) * tokensPerMs,
    );
    this.countedMs = nowMs;
  }
}

/**
 * Why a provider is treated otherwise than others (contract, "Health and routing states";
 * docs/health.md says when).
 */
export type ProviderState = "deprioritized" | "excluded" | "quarantined" | "budget_exhausted";

/** Tells the gravest state of a provider; undefined for one that is well. */
export type StateLookup = (providerId: string) => ProviderState | undefined;

/** A state that a provider is not asked in. */
export type BarringState = Exclude<ProviderState, "deprioritized">;

/** The state if a provider is not asked in it; one that is deprioritized is asked last. */
export const barring = (state: ProviderState | undefined): BarringState | undefined =>
  state === "deprioritized" ? undefined : state;
