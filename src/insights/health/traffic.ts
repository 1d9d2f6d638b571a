import { hourMs, minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import {
  isOutage,
  outcomeOf,
  type AttemptRecord,
  type GenerationRecord,
} from "../generation-record.ts";

/**
 * The name that groups the traffic of providers that no list shows (contract, "Health snapshot").
 */
const unattributed = "unattributed";

/**
 * The last hour's traffic of the whole service and of each provider, without requests on a caller's
 * own key.
 */
export class Traffic {
  private readonly service: TrafficWindow;
  private readonly providers = new Map<string, TrafficWindow>();

  constructor(private readonly clock: Clock) {
    this.service = new TrafficWindow(clock);
  }

  /** Counts a request that was answered, whole or in part. */
  settled({ status, latencyMs, promptTokens, detail }: GenerationRecord, agoMs = 0): void {
    if (detail.credentialSource !== undefined) return;
    const timed = status === "completed" ? 1 : 0;
    const request = {
      requests: 1,
      errors: status === "cut" ? 1 : 0,
      promptTokens,
      cachedTokens: detail.usage["cacheReadTokens"] ?? 0,
      latencyMs: timed * latencyMs,
      timed,
    };
    this.service.record(request, agoMs);
  }

  /** Counts a request that no provider answered. */
  failed({ outage }: { outage: boolean }, agoMs = 0): void {
    this.service.record({ requests: 1, errors: outage ? 1 : 0 }, agoMs);
  }

  /**
   * Counts stored requests of the last hour with their attempts, so that a restart does not forget
   * them.
   */
  recall(records: readonly GenerationRecord[]): void {
    const nowMs = this.clock.nowMs();
    for (const record of records) {
      const agoMs = Math.max(0, nowMs - record.createdAtMs);
      const attempts = record.attempts.filter(
        ({ credentialSource }) => credentialSource === undefined,
      );
      for (const attempt of attempts) this.attempted(attempt, agoMs);
      if (record.status !== "failed") this.settled(record, agoMs);
      else if (attempts.length === record.attempts.length)
        this.failed({ outage: attempts.some(isOutage) }, agoMs);
    }
  }

  /** Counts an attempt at a provider. */
  attempted(attempt: AttemptRecord, agoMs = 0): void {
    const { provider, durationMs } = attempt;
    let window = this.providers.get(provider);
    if (window === undefined)
      this.providers.set(provider, (window = new TrafficWindow(this.clock)));
    const outcome = outcomeOf(attempt);
    const timed = outcome === "served" ? 1 : 0;
    window.record(
      {
        requests: 1,
        errors: outcome === "outage" ? 1 : 0,
        latencyMs: timed * durationMs,
        timed,
      },
      agoMs,
    );
  }

  ofService(): TrafficSums {
    return this.service.lastHour();
  }

  /** Returns the last hour of one provider; undefined where it had no traffic yet. */
  ofProvider(providerId: string): TrafficSums | undefined {
    return this.providers.get(providerId)?.lastHour();
  }

  /**
   * Returns the providers that had any traffic. Those that are not `isPublic` are summed as
   * `unattributed`.
   */
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

const cells = hourMs / minuteMs;

/** Sums over requests. */
export interface TrafficSums {
  requests: number;
  errors: number;
  latencyMs: number;
  /** Requests whose latency is known; failed ones have none. */
  timed: number;
  promptTokens: number;
  cachedTokens: number;
}

const nothing: TrafficSums = {
  requests: 0,
  errors: 0,
  latencyMs: 0,
  timed: 0,
  promptTokens: 0,
  cachedTokens: 0,
};

/**
 * Sums over the last hour, minute by minute. Recording takes constant time, and memory is 60 cells.
 */
class TrafficWindow {
  private readonly sums: TrafficSums[] = Array.from({ length: cells }, () => ({ ...nothing }));
  private readonly minutes = new Float64Array(cells).fill(-1);

  constructor(private readonly clock: Clock) {}

  /** Counts a request that was made some time ago. One that is older than an hour is ignored. */
  record(request: Partial<TrafficSums>, agoMs: number): void {
    const minute = this.minute(agoMs);
    const index = minute % cells;
    const kept = this.minutes[index] ?? -1;
    if (kept > minute) return;
    if (kept !== minute) {
      this.minutes[index] = minute;
      this.sums[index] = { ...nothing };
    }
    addTo(this.sums[index] ?? { ...nothing }, request);
  }

  /** Returns the sums of the last hour, including the current minute. */
  lastHour(): TrafficSums {
    const minute = this.minute(0);
    const total = { ...nothing };
    this.sums.forEach((sums, index) => {
      const age = minute - (this.minutes[index] ?? -1);
      if (age >= 0 && age < cells) addTo(total, sums);
    });
    return total;
  }

  /** The minute of a moment of the last hour, counted from an hour before the clock's start. */
  private minute(agoMs: number): number {
    return Math.floor((this.clock.monotonicMs() + hourMs - Math.min(agoMs, hourMs)) / minuteMs);
  }
}

const names = Object.keys(nothing) as (keyof TrafficSums)[];

function addTo(total: TrafficSums, more: Partial<TrafficSums>): void {
  for (const name of names) total[name] += more[name] ?? 0;
}

/** A provider's daily budget, and what it has cost today, in nano-USD. */
export interface Budget {
  limitNano: bigint;
  spentNano: bigint;
}
