import type { Clock } from "../../platform/lib/clock.ts";

/** Seconds over which an outage counts (contract, rule 1 of the provider object). */
const outageWindowSeconds = 30;
/** A single failure may be chance; two within half a minute are a pattern. */
const outageFailuresMin = 2;
/** Below one failure in two attempts most requests still get through, so the route stays primary. */
const outageFailureShareMin = 0.5;
/** Samples for medians: enough for a stable p50, few enough to sort on demand. */
const samplesMax = 128;
const sampleLifetimeMs = 5 * 60_000;

interface Sample {
  atMs: number;
  firstTokenMs: number;
  tokensPerSecond: number;
}

class ProviderWindow {
  readonly attempts = new Uint32Array(outageWindowSeconds);
  readonly failures = new Uint32Array(outageWindowSeconds);
  second = 0;
  readonly samples: Sample[] = [];

  advance(second: number): void {
    const steps = Math.min(second - this.second, outageWindowSeconds);
    for (let step = 1; step <= steps; step += 1) {
      const index = (second - steps + step) % outageWindowSeconds;
      this.attempts[index] = 0;
      this.failures[index] = 0;
    }
    if (steps > 0) this.second = second;
  }
}

const median = (values: number[]): number | undefined =>
  values.length === 0 ? undefined : values.sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

/** What was seen of each provider lately: outages of the last 30 seconds, medians of the last five minutes. */
export class HealthWindows {
  private readonly windows = new Map<string, ProviderWindow>();
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  recordSuccess(providerId: string, sample?: { firstTokenMs: number; tokensPerSecond: number }): void {
    const window = this.current(providerId);
    const index = window.second % outageWindowSeconds;
    window.attempts[index] = (window.attempts[index] ?? 0) + 1;
    if (sample === undefined) return;
    if (window.samples.length >= samplesMax) window.samples.shift();
    window.samples.push({ atMs: this.clock.nowMs(), ...sample });
  }

  /** Counts a failure that is the provider's own: not a caller's mistake, not a client that left. */
  recordFailure(providerId: string): void {
    const window = this.current(providerId);
    const index = window.second % outageWindowSeconds;
    window.attempts[index] = (window.attempts[index] ?? 0) + 1;
    window.failures[index] = (window.failures[index] ?? 0) + 1;
  }

  /** Whether the provider had a significant outage in the last 30 seconds. */
  hasOutage(providerId: string): boolean {
    if (!this.windows.has(providerId)) return false;
    const window = this.current(providerId);
    let attempts = 0;
    let failures = 0;
    for (let index = 0; index < outageWindowSeconds; index += 1) {
      attempts += window.attempts[index] ?? 0;
      failures += window.failures[index] ?? 0;
    }
    return failures >= outageFailuresMin && failures / attempts >= outageFailureShareMin;
  }

  /** Median milliseconds to the first token over five minutes; undefined without traffic. */
  medianFirstTokenMs(providerId: string): number | undefined {
    return median(this.recent(providerId).map((sample) => sample.firstTokenMs));
  }

  /** Median output tokens a second over five minutes; undefined without traffic. */
  medianTokensPerSecond(providerId: string): number | undefined {
    return median(this.recent(providerId).map((sample) => sample.tokensPerSecond));
  }

  private recent(providerId: string): Sample[] {
    const sinceMs = this.clock.nowMs() - sampleLifetimeMs;
    return this.windows.get(providerId)?.samples.filter((sample) => sample.atMs >= sinceMs) ?? [];
  }

  private current(providerId: string): ProviderWindow {
    let window = this.windows.get(providerId);
    if (window === undefined) this.windows.set(providerId, (window = new ProviderWindow()));
    window.advance(Math.floor(this.clock.nowMs() / 1000));
    return window;
  }
}
