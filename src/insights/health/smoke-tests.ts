import type { Clock } from "../../platform/lib/clock.ts";
import { lastDailyRun } from "./daily-cron.ts";
import type { HealthSignal } from "./provider-health.ts";
import type { SmokeResult, SmokeStore } from "./smoke-store.ts";
import { healthThresholds, smokeCadence } from "./thresholds.ts";

/** What became of one real request. */
export type SmokeAnswer =
  | { outcome: "passed"; latencyMs: number }
  /** Shown to operators only. */
  | { outcome: "failed" | "skipped"; message: string };

/** Real requests at the platform's own cost. */
export interface SmokePort {
  /** Ids of the providers that have a platform credential and are no simulation. */
  providerIds(): readonly string[];
  /** Those that are tested on demand, where another gateway makes the daily tests; absent means the same. */
  onDemandIds?(): readonly string[];
  /** Sends the smallest real request to a provider and tells what came of it; gives up when the signal fires. */
  ask(providerId: string, signal: AbortSignal): Promise<SmokeAnswer>;
}

interface SmokeOptions {
  store: SmokeStore;
  clock: Clock;
  /** Undefined where nothing can be asked. */
  port: SmokePort | undefined;
  /** Told what a test says of a provider. */
  onSignal(providerId: string, signal: HealthSignal): void;
}

/** One real request a day to each provider with a platform credential, so that a silent one is known before callers need it. */
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

  /** Reads the results of the process before; a provider whose test failed then is still excluded. */
  static async open(options: SmokeOptions): Promise<SmokeTests> {
    return new SmokeTests(options, await options.store.all());
  }

  /** Whether there is anything to test. */
  get applies(): boolean {
    return (this.options.port?.providerIds().length ?? 0) > 0;
  }

  /** The last run of any test, as a wall time in milliseconds; undefined before the first. */
  get lastRun(): number | undefined {
    return this.lastRunMs;
  }

  /** The last result of each provider that is to be tested. */
  current(): SmokeResult[] {
    return (this.options.port?.providerIds() ?? []).flatMap((id) => this.results.get(id) ?? []);
  }

  /** Ids of the providers that can be tested on demand. */
  testable(): readonly string[] {
    const { port } = this.options;
    return port?.onDemandIds?.() ?? port?.providerIds() ?? [];
  }

  /** The last result of each provider as every gateway has stored it. */
  stored(): Promise<SmokeResult[]> {
    return this.options.store.all();
  }

  /**
   * The providers whose test is due: all of them when the hour of the day has come since they were tested,
   * those that failed when it is time to repeat. A first start waits for the hour of the day.
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

  /** Tests providers one after the other, so that a check never looks like load. Rejects when a result cannot be kept. */
  async run(providerIds: readonly string[]): Promise<void> {
    for (const id of providerIds) await this.test(id);
  }

  /** Gives up what is under way; nothing is tested any more. */
  end(): void {
    this.ending.abort();
  }

  /** Asks a provider once whether it is back; its result is no smoke test's. */
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
