import type { ProviderState, StateLookup } from "./provider-states.ts";
import type { ProviderWindows } from "./recent-window.ts";
import { RouteMeasures } from "./route-measures.ts";

/** Failures and attempts of the last five minutes. */
export interface ErrorRate {
  attempts: number;
  failures: number;
}

/** What is known of a provider at the moment. */
interface Known {
  windows: ProviderWindows | undefined;
  state: ProviderState | undefined;
  hasOutage: boolean;
}

/**
 * Health at one moment: the clock is read once, and what concerns all models of a provider is found out once, however many of its
 * routes a plan looks at.
 */
export class HealthMoment {
  private readonly states: { stateOf: StateLookup };
  private readonly providers: ReadonlyMap<string, ProviderWindows>;
  private readonly nowMs: number;
  private readonly known = new Map<string, Known>();

  constructor(states: { stateOf: StateLookup }, at: { providers: ReadonlyMap<string, ProviderWindows>; nowMs: number }) {
    this.states = states;
    this.providers = at.providers;
    this.nowMs = at.nowMs;
  }

  /** The gravest state of a provider; undefined for one that is well. */
  stateOf(providerId: string): ProviderState | undefined {
    return this.about(providerId).state;
  }

  /** Whether the provider, or the model at it, had a significant outage in the last 30 seconds. */
  hasOutage(providerId: string, modelId?: string): boolean {
    const { hasOutage, windows } = this.about(providerId);
    if (hasOutage || windows === undefined || modelId === undefined) return hasOutage;
    return windows.models.get(modelId)?.hasOutage(this.nowMs) ?? false;
  }

  /** Whether the provider is in any state, or has an outage, or the model at it has. */
  isTroubled(providerId: string, modelId: string): boolean {
    const { state, hasOutage, windows } = this.about(providerId);
    if (state !== undefined || hasOutage) return true;
    return windows?.models.get(modelId)?.hasOutage(this.nowMs) ?? false;
  }

  /** Attempts and failures over five minutes of a provider, or of one model at it; undefined without traffic. */
  errorRate(providerId: string, modelId?: string): ErrorRate | undefined {
    const windows = this.providers.get(providerId);
    const rate = (modelId === undefined ? windows?.own : windows?.models.get(modelId))?.rate;
    const attempts = rate?.attempts(this.nowMs) ?? 0;
    return rate === undefined || attempts === 0 ? undefined : { attempts, failures: rate.failures(this.nowMs) };
  }

  /** Latency to the first token and throughput of a model at a provider; nothing in it is known without traffic. */
  measuresOf(providerId: string, modelId: string): RouteMeasures {
    const windows = this.providers.get(providerId);
    const model = windows?.models.get(modelId);
    return new RouteMeasures({
      firstTokenMs: model?.firstTokenMs ?? windows?.own.firstTokenMs,
      tokensPerSecond: model?.tokensPerSecond ?? windows?.own.tokensPerSecond,
      nowMs: this.nowMs,
    });
  }

  private about(providerId: string): Known {
    let known = this.known.get(providerId);
    if (known === undefined) {
      const windows = this.providers.get(providerId);
      const { nowMs } = this;
      known = { windows, state: this.states.stateOf(providerId), hasOutage: windows?.own.hasOutage(nowMs) ?? false };
      this.known.set(providerId, known);
    }
    return known;
  }
}
