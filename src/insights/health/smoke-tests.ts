import type { Kysely } from "kysely";
import { assert } from "../../platform/kernel/assert.ts";
import { type Clock, dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import type { HealthSignal } from "./provider-health.ts";
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
  /**
   * Those that are tested on demand, where another gateway makes the daily tests; absent means the
   * same.
   */
  onDemandIds?(): readonly string[];
  /**
   * Sends the smallest real request to a provider and tells what came of it; gives up when the
   * signal fires.
   */
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

/**
 * One real request a day to each provider with a platform credential, so that a silent one is known
 * before callers need it.
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
   * Reads the results of the process before; a provider whose test failed then is still excluded.
   */
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
   * The providers whose test is due: all of them when the hour of the day has come since they were
   * tested, those that failed when it is time to repeat. A first start waits for the hour of the
   * day.
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
   * Tests providers one after the other, so that a check never looks like load. Rejects when a
   * result cannot be kept.
   */
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

/**
 * How a smoke test ended; `skipped` where there was nothing to ask, such as no model that chats.
 */
type SmokeOutcome = "passed" | "failed" | "skipped";

/** Results as they are stored. */
export interface SmokeTables {
  smoke_results: {
    provider_id: string;
    at_ms: number;
    outcome: string;
    latency_ms: number | null;
    message: string | null;
  };
}

/** The last smoke test of a provider. */
export interface SmokeResult {
  providerId: string;
  atMs: number;
  outcome: SmokeOutcome;
  latencyMs: number | null;
  /** Why it failed or was skipped. */
  message: string | null;
}

/** The last smoke test of each provider. */
export class SmokeStore {
  private readonly database: Kysely<SmokeTables>;

  constructor(database: Kysely<SmokeTables>) {
    this.database = database;
  }

  async all(): Promise<SmokeResult[]> {
    const rows = await this.database.selectFrom("smoke_results").selectAll().execute();
    return rows.map((row) => ({
      providerId: row.provider_id,
      atMs: row.at_ms,
      outcome: row.outcome as SmokeOutcome,
      latencyMs: row.latency_ms,
      message: row.message,
    }));
  }

  async save({ providerId, atMs, outcome, latencyMs, message }: SmokeResult): Promise<void> {
    const row = { at_ms: atMs, outcome, latency_ms: latencyMs, message };
    await this.database
      .insertInto("smoke_results")
      .values({ provider_id: providerId, ...row })
      .onConflict((conflict) => conflict.column("provider_id").doUpdateSet(row))
      .execute();
  }
}

const dailyPattern = /^(\d{1,2}) (\d{1,2}) \* \* \*$/;

/**
 * The last time at or before a wall time that a daily cron text such as `17 4 * * *` (UTC) names,
 * in milliseconds.
 */
export function lastDailyRun(cron: string, nowMs: number): number {
  const match = dailyPattern.exec(cron);
  assert(match !== null, `${cron} is not minute and hour of every day`);
  const ofDayMs = Number(match[1]) * minuteMs + Number(match[2]) * hourMs;
  return Math.floor((nowMs - ofDayMs) / dayMs) * dayMs + ofDayMs;
}
