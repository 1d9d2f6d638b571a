import type { Clock } from "../../platform/lib/clock.ts";
import { HealthMoment, type ErrorRate } from "./health-moment.ts";
import type { StateLookup } from "./provider-states.ts";
import { ProviderWindows } from "./provider-windows.ts";
import { RecentWindow, type HealthSample } from "./recent-window.ts";
import type { RouteMeasures } from "./route-measures.ts";

/** Models at providers that are measured at once; beyond it the one that was quiet for longest is forgotten. */
const pairsMax = 1_024;

/**
 * What was seen of each provider, and of each model at it, lately: outages of the last 30 seconds, error rates
 * and percentiles of the last five minutes. Recording is constant work and memory is bounded.
 */
export class HealthWindows {
  private readonly providers = new Map<string, ProviderWindows>();
  private readonly clock: Clock;
  private pairs = 0;
  private moments = 0;
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

  /** Attempts and failures over five minutes of a provider, or of one model at it; undefined without traffic. */
  errorRate(providerId: string, modelId?: string): ErrorRate | undefined {
    const provider = this.providers.get(providerId);
    return provider && this.moment().errorRate(provider, modelId);
  }

  /** Latency to the first token and throughput of a model at a provider; nothing in it is known without traffic. */
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
