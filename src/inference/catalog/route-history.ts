import type { Kysely } from "kysely";
import { dayMs, type Clock } from "../../platform/kernel/clock.ts";

/**
 * The columns that are read here of the daily sums that settlements write
 * (src/insights/usage/usage-rollup.ts). Days are counted from the epoch, in UTC.
 */
export interface RouteHistoryTables {
  network_days: {
    day: number;
    model: string;
    provider: string;
    requests: number;
    attempts: number;
    failures: number;
  };
}

/** Days that uptime is reported for, including today. */
export const uptimeDays = 90;

/** Days whose requests determine the order by usage, including today. */
const usageDays = 7;

/** A day of a provider: how often it was tried, and how often it failed by its own fault. */
export interface UptimeDay {
  /** Days since the epoch, in UTC. */
  day: number;
  attempts: number;
  failures: number;
}

/** The attempts at a provider for a model, and those that failed by its own fault. */
interface RouteAttempts {
  model: string;
  provider: string;
  attempts: number;
  failures: number;
}

/** The daily usage of models, and the availability of their providers. */
export class RouteHistory {
  private readonly database: Kysely<RouteHistoryTables>;
  private readonly clock: Clock;

  constructor(options: { database: Kysely<RouteHistoryTables>; clock: Clock }) {
    this.database = options.database;
    this.clock = options.clock;
  }

  /** Returns the requests of the last seven days by the id of the model that served them. */
  async weeklyRequests(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.database
      .selectFrom("network_days")
      .where("day", ">", this.today - usageDays)
      .select(["model", ({ fn }) => fn.sum<number | string>("requests").as("requests")])
      .groupBy("model")
      .execute();
    return new Map(rows.map(({ model, requests }) => [model, Number(requests)]));
  }

  /**
   * Returns the last 90 days of each provider with any of the models, oldest first; keys are slugs.
   */
  async uptime({
    models,
    providers,
  }: {
    models: readonly string[];
    providers: readonly string[];
  }): Promise<ReadonlyMap<string, readonly UptimeDay[]>> {
    // A preset may have no members, and Postgres accepts no empty list.
    if (models.length === 0) return new Map();
    const first = this.today - uptimeDays + 1;
    const days = Array.from({ length: uptimeDays }, (_, index) => first + index);
    // Rows are ordered by day, then model: naming the days makes this that many lookups instead of
    // a scan.
    const rows = await this.database
      .selectFrom("network_days")
      .where("day", "in", days)
      .where("model", "in", models)
      .select(["provider", "day", "attempts", "failures"])
      .execute();
    const byProvider = new Map(
      providers.map((provider) => [
        provider,
        days.map((day): UptimeDay => ({ day, attempts: 0, failures: 0 })),
      ]),
    );
    for (const { provider, day, attempts, failures } of rows) {
      const counted = byProvider.get(provider)?.[day - first];
      if (counted === undefined) continue;
      counted.attempts += attempts;
      counted.failures += failures;
    }
    return byProvider;
  }

  /**
   * Returns the attempts of the last 90 days at each provider of each model that was tried in them.
   */
  async attempts(): Promise<RouteAttempts[]> {
    const rows = await this.database
      .selectFrom("network_days")
      .where("day", ">", this.today - uptimeDays)
      .select(["model", "provider"])
      .select(({ fn }) => [
        fn.sum<number | string>("attempts").as("attempts"),
        fn.sum<number | string>("failures").as("failures"),
      ])
      .groupBy(["model", "provider"])
      .orderBy("model")
      .orderBy("provider")
      .execute();
    return rows.map(({ model, provider, attempts, failures }) => ({
      model,
      provider,
      attempts: Number(attempts),
      failures: Number(failures),
    }));
  }

  /**
   * Returns the last days of every provider that was tried in them, oldest first, over all models.
   */
  async providers(count: number): Promise<ReadonlyMap<string, readonly UptimeDay[]>> {
    const first = this.today - count + 1;
    const rows = await this.database
      .selectFrom("network_days")
      .where("day", ">=", first)
      .select(["provider", "day"])
      .select(({ fn }) => [
        fn.sum<number | string>("attempts").as("attempts"),
        fn.sum<number | string>("failures").as("failures"),
      ])
      .groupBy(["provider", "day"])
      .execute();
    const byProvider = new Map<string, UptimeDay[]>();
    for (const { provider, day, attempts, failures } of rows) {
      const days =
        byProvider.get(provider) ??
        Array.from({ length: count }, (_, index) => ({
          day: first + index,
          attempts: 0,
          failures: 0,
        }));
      byProvider.set(provider, days);
      const counted = days[day - first];
      if (counted !== undefined)
        Object.assign(counted, { attempts: Number(attempts), failures: Number(failures) });
    }
    return byProvider;
  }

  private get today(): number {
    return Math.floor(this.clock.nowMs() / dayMs);
  }
}
