import { RollingCounts } from "./rolling-counts.ts";
import { RollingDistribution } from "./rolling-distribution.ts";

/** Seconds over which an outage counts (contract, rule 1 of the provider object). */
const outageWindowSeconds = 30;
/** A single failure may be chance; two within half a minute are a pattern. */
const outageFailuresMin = 2;
/** Below one failure in two attempts most requests still get through, so the route stays primary. */
const outageFailureShareMin = 0.5;
/** Error rates are over five minutes, as percentiles are. */
const rateWindow = { cells: 10, cellMs: 30_000 };
/** Below these no provider differs from another in a way that anybody notices. */
const smallest = { firstTokenMs: 1, tokensPerSecond: 0.1 };

/** What one answer showed; a whole answer shows no first token. */
export interface HealthSample {
  firstTokenMs?: number;
  tokensPerSecond?: number;
  /** Catalog id of the model that answered. Samples without one stand for all models of the provider. */
  model?: string;
}

/** What is remembered of a provider, or of one model at it. */
export class RecentWindow {
  readonly outage = new RollingCounts({ cells: outageWindowSeconds, cellMs: 1_000 });
  readonly rate = new RollingCounts(rateWindow);
  firstTokenMs: RollingDistribution | undefined;
  tokensPerSecond: RollingDistribution | undefined;
  lastMs = 0;
  private lastFailureMs = Number.NEGATIVE_INFINITY;

  count(nowMs: number, failed: boolean): void {
    this.lastMs = nowMs;
    if (failed) this.lastFailureMs = nowMs;
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

  /** Whether anything failed within the window of outages; most providers are well, and planning asks of every route. */
  failedLately(nowMs: number): boolean {
    return nowMs - this.lastFailureMs <= (outageWindowSeconds + 1) * 1_000;
  }

  hasOutage(nowMs: number): boolean {
    if (!this.failedLately(nowMs)) return false;
    const failures = this.outage.failures(nowMs);
    return (
      failures >= outageFailuresMin &&
      failures / this.outage.attempts(nowMs) >= outageFailureShareMin
    );
  }
}
