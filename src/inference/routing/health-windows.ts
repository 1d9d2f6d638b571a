import type { Clock } from "../../platform/lib/clock.ts";
import type { StateLookup } from "./provider-states.ts";
import { RetryBudget } from "./retry-budget.ts";
import { RollingCounts } from "./rolling-counts.ts";
import { RollingDistribution } from "./rolling-distribution.ts";
import { RouteMeasures } from "./route-measures.ts";

/** Seconds over which an outage counts (contract, rule 1 of the provider object). */
const outageWindowSeconds = 30;
/** A single failure may be chance; two within half a minute are a pattern. */
const outageFailuresMin = 2;
/** Below one failure in two attempts most requests still get through, so the route stays primary. */
const outageFailureShareMin = 0.5;
/** Error rates are over five minutes, as percentiles are. */
const rateWindow = { cells: 10, cellMs: 30_000 };
/** Models at providers that are measured at once; beyond it the one that was quiet for longest is forgotten. */
const pairsMax = 1_024;
/** Below these no provider differs from another in a way that anybody notices. */
const smallest = { firstTokenMs: 1, tokensPerSecond: 0.1 };

/** What one answer showed; a whole answer shows no first token. */
export interface HealthSample {
  firstTokenMs?: number;
  tokensPerSecond?: number;
  /** Catalog id of the model that answered. Samples without one stand for all models of the provider. */
  model?: string;
}

/** Failures and attempts of the last five minutes. */
export interface ErrorRate {
  attempts: number;
  failures: number;
}

/** What is remembered of a provider, or of one model at it. */
class RecentWindow {
  readonly outage = new RollingCounts({ cells: outageWindowSeconds, cellMs: 1_000 });
  readonly rate = new RollingCounts(rateWindow);
  firstTokenMs: RollingDistribution | undefined;
  tokensPerSecond: RollingDistribution | undefined;
  lastMs = 0;

  count(nowMs: number, failed: boolean): void {
    this.lastMs = nowMs;
    this.outage.record(nowMs, failed);
    this.rate.record(nowMs, failed);
  }

  measure({ firstTokenMs, tokensPerSecond }: HealthSample, nowMs: number): void {
    if (firstTokenMs !== undefined) (this.firstTokenMs ??= new RollingDistribution(smallest.firstTokenMs)).record(firstTokenMs, nowMs);
    if (tokensPerSecond !== undefined) {
      (this.tokensPerSecond ??= new RollingDistribution(smallest.tokensPerSecond)).record(tokensPerSecond, nowMs);
    }
  }

  hasOutage(nowMs: number): boolean {
    const failures = this.outage.failures(nowMs);
    return failures >= outageFailuresMin && failures / this.outage.attempts(nowMs) >= outageFailureShareMin;
  }
}

interface ProviderWindows {
  own: RecentWindow;
  retries: RetryBudget;
  models: Map<string, RecentWindow>;
}

/**
 * What was seen of each provider, and of each model at it, lately: outages of the last 30 seconds, error rates
 * and percentiles of the last five minutes. Recording is constant work and memory is bounded.
 */
export class HealthWindows {
  private readonly providers = new Map<string, ProviderWindows>();
  private readonly clock: Clock;
  private pairs = 0;
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
    const window = sample?.model === undefined ? windows.own : this.modelWindow(windows, sample.model);
    if (window !== windows.own) window.count(nowMs, false);
    if (sample !== undefined) window.measure(sample, nowMs);
  }

  /** Counts a failure that is the provider's own: not a caller's mistake, not a client that left. */
  recordFailure(providerId: string, modelId?: string): void {
    const nowMs = this.clock.monotonicMs();
    const windows = this.windowsOf(providerId);
    windows.own.count(nowMs, true);
    windows.retries.count(nowMs, true);
    if (modelId !== undefined) this.modelWindow(windows, modelId).count(nowMs, true);
  }

  /** Whether the provider, or the model at it, had a significant outage in the last 30 seconds. */
  hasOutage(providerId: string, modelId?: string): boolean {
    const windows = this.providers.get(providerId);
    if (windows === undefined) return false;
    const nowMs = this.clock.monotonicMs();
    if (windows.own.hasOutage(nowMs)) return true;
    return modelId !== undefined && (windows.models.get(modelId)?.hasOutage(nowMs) ?? false);
  }

  /** Whether a request that another candidate failed may be sent to the provider. */
  mayRetry(providerId: string): boolean {
    return this.providers.get(providerId)?.retries.mayRetry(this.clock.monotonicMs()) ?? true;
  }

  /** Attempts and failures over five minutes of a provider, or of one model at it; undefined without traffic. */
  errorRate(providerId: string, modelId?: string): ErrorRate | undefined {
    const windows = this.providers.get(providerId);
    const rate = (modelId === undefined ? windows?.own : windows?.models.get(modelId))?.rate;
    if (rate === undefined) return undefined;
    const nowMs = this.clock.monotonicMs();
    const attempts = rate.attempts(nowMs);
    return attempts === 0 ? undefined : { attempts, failures: rate.failures(nowMs) };
  }

  /** Latency to the first token and throughput of a model at a provider; nothing in it is known without traffic. */
  measuresOf(providerId: string, modelId: string): RouteMeasures {
    const windows = this.providers.get(providerId);
    const model = windows?.models.get(modelId);
    return new RouteMeasures({
      firstTokenMs: model?.firstTokenMs ?? windows?.own.firstTokenMs,
      tokensPerSecond: model?.tokensPerSecond ?? windows?.own.tokensPerSecond,
      nowMs: this.clock.monotonicMs(),
    });
  }

  private windowsOf(providerId: string): ProviderWindows {
    let windows = this.providers.get(providerId);
    if (windows === undefined) {
      windows = { own: new RecentWindow(), retries: new RetryBudget(this.clock.monotonicMs()), models: new Map() };
      this.providers.set(providerId, windows);
    }
    return windows;
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
