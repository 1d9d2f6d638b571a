import { assert } from "../../platform/kernel/assert.ts";
import { type Clock, dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import type { HealthSignal } from "./provider-health.ts";
import { healthThresholds, smokeCadence } from "./thresholds.ts";
import type { SmokeResult, SmokeStore } from "./smoke-store.ts";

/** The outcome of one real request. */
export type SmokeAnswer =
  | { outcome: "passed"; latencyMs: number }
  /** Shown to operators only. */
  | { outcome: "failed" | "skipped"; message: string };

/** Sends real requests at the platform's own cost. */
export interface SmokePort {
  /** Returns the ids of the providers that have a platform credential and are not simulated. */
  providerIds(): readonly string[];
  /**
   * Returns the providers that are tested on demand, where another gateway runs the daily tests;
   * absent means the same ones.
   */
  onDemandIds?(): readonly string[];
  /**
   * Sends the smallest real request to a provider and returns its outcome. The signal aborts it.
   */
  ask(providerId: string, signal: AbortSignal): Promise<SmokeAnswer>;
}

interface SmokeOptions {
  store: SmokeStore;
  clock: Clock;
  /** Undefined where no provider can be tested. */
  port: SmokePort | undefined;
  /** Called with what a test says about a provider. */
  onSignal(providerId: string, signal: HealthSignal): void;
}

/**
 * Sends one real request a day to each provider with a platform credential, so that a failure of a
 * provider without traffic is known before callers need it.
 */
export class SmokeTests {
  private readonly options: SmokeOptions;
  private readonly results: Map<string, SmokeResult>;
  private readonly openedAtMs: number;
  private lastRunMs: number | undefined;
  private readonly probing = new Set<string>();
  private readonly ending = new AbortController();

  private constructor(options: SmokeOptions, results: readonly SmokeResult[]) {
    this.options = options;
    this.results = new Map(results.map((result) => [result.providerId, result]));
    this.openedAtMs = options.clock.nowMs();
    this.lastRunMs =
      results.length === 0 ? undefined : Math.max(...results.map(({ atMs }) => atMs));
    for (const { providerId, outcome } of results)
      if (outcome === "failed") options.onSignal(providerId, "smoke-failed");
  }

  /**
   * Loads the results of the previous process. A provider whose last test failed is still excluded.
   */
  static async open(options: SmokeOptions): Promise<SmokeTests> {
    return new SmokeTests(options, await options.store.all());
  }

  /** Whether there is anything to test. */
  get applies(): boolean {
    return (this.options.port?.providerIds().length ?? 0) > 0;
  }

  /** The time of the last test, as a wall time in milliseconds; undefined before the first. */
  get lastRun(): number | undefined {
    return this.lastRunMs;
  }

  /** Returns the last result of each provider that is to be tested. */
  current(): SmokeResult[] {
    return (this.options.port?.providerIds() ?? []).flatMap((id) => this.results.get(id) ?? []);
  }

  /** Returns the ids of the providers that can be tested on demand. */
  testable(): readonly string[] {
    const { port } = this.options;
    return port?.onDemandIds?.() ?? port?.providerIds() ?? [];
  }

  /** Returns the last result of each provider as stored by any gateway. */
  stored(): Promise<SmokeResult[]> {
    return this.options.store.all();
  }

  /**
   * Returns the providers whose test is due: all of them when the daily time has passed since their
   * last test, and failed ones when their repetition is due. A first start waits for the daily
   * time.
   */
  due(): string[] {
    const nowMs = this.options.clock.nowMs();
    const scheduledMs = lastDailyRun(smokeCadence, nowMs);
    return (this.options.port?.providerIds() ?? []).filter((id) => {
      const last = this.results.get(id);
      if (last?.outcome === "failed" && nowMs - last.atMs >= healthThresholds.smokeRepeatMs)
        return true;
      return (last?.atMs ?? this.openedAtMs) < scheduledMs;
    });
  }

  /**
   * Tests providers one after another, so that tests never look like load. Rejects when a result
   * cannot be stored.
   */
  async run(providerIds: readonly string[]): Promise<void> {
    for (const id of providerIds) await this.test(id);
  }

  /** Aborts tests in progress and starts no more. */
  end(): void {
    this.ending.abort();
  }

  /** Probes once whether a provider is back, without recording a smoke test. */
  async probe(providerId: string): Promise<void> {
    const { port, onSignal } = this.options;
    const { signal } = this.ending;
    if (
      port === undefined ||
      signal.aborted ||
      this.probing.has(providerId) ||
      !port.providerIds().includes(providerId)
    )
      return;
    this.probing.add(providerId);
    const { outcome } = await port
      .ask(providerId, signal)
      .finally(() => this.probing.delete(providerId));
    if (outcome !== "skipped" && !signal.aborted)
      onSignal(providerId, outcome === "passed" ? "served" : "outage");
  }

  private async test(providerId: string): Promise<void> {
    const { port, store, clock, onSignal } = this.options;
    const { signal } = this.ending;
    if (port === undefined || signal.aborted) return;
    let answer = await port.ask(providerId, signal);
    for (
      let tries = 1;
      tries < healthThresholds.smokeTries && answer.outcome === "failed";
      tries += 1
    ) {
      answer = await port.ask(providerId, signal);
    }
    if (signal.aborted) return;
    const atMs = clock.nowMs();
    const result: SmokeResult =
      answer.outcome === "passed"
        ? {
            providerId,
            atMs,
            outcome: "passed",
            latencyMs: Math.round(answer.latencyMs),
            message: null,
          }
        : {
            providerId,
            atMs,
            outcome: answer.outcome,
            latencyMs: null,
            message: answer.message.slice(0, 200),
          };
    this.results.set(providerId, result);
    this.lastRunMs = atMs;
    if (answer.outcome !== "skipped")
      onSignal(providerId, answer.outcome === "passed" ? "smoke-passed" : "smoke-failed");
    await store.save(result);
  }
}

const dailyPattern = /^(\d{1,2}) (\d{1,2}) \* \* \*$/;

/**
 * Returns the last time, at or before a wall time, of a daily cron expression such as `17 4 * * *`
 * (UTC), in milliseconds.
 */
export function lastDailyRun(cron: string, nowMs: number): number {
  const match = dailyPattern.exec(cron);
  assert(match !== null, `${cron} is not minute and hour of every day`);
  const ofDayMs = Number(match[1]) * minuteMs + Number(match[2]) * hourMs;
  return Math.floor((nowMs - ofDayMs) / dayMs) * dayMs + ofDayMs;
}
