import type { ProviderState, StateLookup } from "./provider-states.ts";
import type { ProviderWindows } from "./provider-windows.ts";
import { RouteMeasures } from "./route-measures.ts";

/** Failures and attempts of the last five minutes. */
export interface ErrorRate {
  attempts: number;
  failures: number;
}

/**
 * Health at one moment: the clock is read once, and what concerns all models of a provider is found out once, however many of its
 * routes a plan looks at.
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

  /** Attempts and failures over five minutes of a provider, or of one model at it; undefined without traffic. */
  errorRate({ own, models }: ProviderWindows, modelId?: string): ErrorRate | undefined {
    const rate = (modelId === undefined ? own : models.get(modelId))?.rate;
    const attempts = rate?.attempts(this.nowMs) ?? 0;
    return rate === undefined || attempts === 0
      ? undefined
      : { attempts, failures: rate.failures(this.nowMs) };
  }

  /** Latency to the first token and throughput of a model at a provider; nothing in it is known without traffic. */
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
