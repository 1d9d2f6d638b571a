import type { Clock } from "../../platform/lib/clock.ts";
import { outcomeOf } from "../attempt-outcome.ts";
import type { AttemptRecord, GenerationRecord } from "../generation-record.ts";
import { TrafficWindow, type TrafficSums } from "./traffic-window.ts";

/** The name under which traffic of backends stands that no list shows (contract, "Health snapshot"). */
export const unattributed = "unattributed";

/** The last hour of the whole service and of each provider, requests with a caller's own key left out. */
export class Traffic {
  private readonly clock: Clock;
  private readonly service: TrafficWindow;
  private readonly providers = new Map<string, TrafficWindow>();

  constructor(clock: Clock) {
    this.clock = clock;
    this.service = new TrafficWindow(clock);
  }

  /** A request that was answered, whole or in part. */
  settled({ status, latencyMs, promptTokens, detail }: GenerationRecord): void {
    if (detail.credentialSource !== undefined) return;
    const timed = status === "completed" ? 1 : 0;
    this.service.record({
      requests: 1,
      errors: status === "cut" ? 1 : 0,
      promptTokens,
      cachedTokens: detail.usage["cacheReadTokens"] ?? 0,
      latencyMs: timed * latencyMs,
      timed,
    });
  }

  /** A request that nobody answered. */
  failed({ outage }: { outage: boolean }): void {
    this.service.record({ requests: 1, errors: outage ? 1 : 0 });
  }

  /** A try at a provider. */
  attempted(attempt: AttemptRecord): void {
    const { provider, durationMs } = attempt;
    let window = this.providers.get(provider);
    if (window === undefined)
      this.providers.set(provider, (window = new TrafficWindow(this.clock)));
    const outcome = outcomeOf(attempt);
    const timed = outcome === "served" ? 1 : 0;
    window.record({
      requests: 1,
      errors: outcome === "outage" ? 1 : 0,
      latencyMs: timed * durationMs,
      timed,
    });
  }

  ofService(): TrafficSums {
    return this.service.lastHour();
  }

  /** The last hour of one provider; undefined where it had no traffic yet. */
  ofProvider(providerId: string): TrafficSums | undefined {
    return this.providers.get(providerId)?.lastHour();
  }

  /** The providers that had any traffic; those that `isPublic` does not know are summed up as `unattributed`. */
  ofProviders(isPublic: (providerId: string) => boolean): Map<string, TrafficSums> {
    const sums = new Map<string, TrafficSums>();
    for (const [id, window] of this.providers) {
      const own = window.lastHour();
      if (own.requests === 0) continue;
      const name = isPublic(id) ? id : unattributed;
      const known = sums.get(name);
      if (known === undefined) sums.set(name, own);
      else for (const key of Object.keys(own) as (keyof TrafficSums)[]) known[key] += own[key];
    }
    return sums;
  }
}
