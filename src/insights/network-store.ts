import type { Kysely } from "kysely";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { UsageTables } from "./usage/usage-rollup.ts";

/** The tokens and requests of one time bucket. */
export interface NetworkBucket {
  /** Hours or days since the epoch. */
  bucket: number;
  tokens: number;
  requests: number;
}

/** The usage of one model over a range of days. */
export interface ModelTotals {
  model: string;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

/** Reads the counters of the whole service; each query is a range of a primary key. */
export class NetworkStore {
  private readonly database: Kysely<UsageTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<UsageTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /** Resolves when everything that was counted so far can be read. */
  caughtUp(): Promise<void> {
    return this.commits.flush();
  }

  /** Selects every hour from one on that had any requests. */
  hoursQuery(sinceHour: number) {
    return this.database
      .selectFrom("network_hours")
      .select(["hour as bucket", "tokens", "requests"])
      .where("hour", ">=", sinceHour);
  }

  /** Selects every day from one on that had any requests. */
  daysQuery(sinceDay: number) {
    return this.database
      .selectFrom("network_days")
      .select(({ fn }) => [
        "day as bucket",
        fn.sum<number>("requests").as("requests"),
        fn.sum<number>("prompt_tokens").as("prompt_tokens"),
        fn.sum<number>("completion_tokens").as("completion_tokens"),
      ])
      .where("day", ">=", sinceDay)
      .groupBy("day");
  }

  /** Selects every model that was used since a day. */
  modelsQuery(sinceDay: number) {
    return this.database
      .selectFrom("network_days")
      .select(({ fn }) => [
        "model",
        fn.sum<number>("requests").as("requests"),
        fn.sum<number>("prompt_tokens").as("prompt_tokens"),
        fn.sum<number>("completion_tokens").as("completion_tokens"),
        fn.sum<number>("cached_tokens").as("cached_tokens"),
        fn.sum<number>("reasoning_tokens").as("reasoning_tokens"),
      ])
      .where("day", ">=", sinceDay)
      .groupBy("model");
  }

  /** Returns what callers were charged for each provider's answers on a day, in nano-USD. */
  async spendOf(day: number): Promise<ReadonlyMap<string, bigint>> {
    const rows = await this.database
      .selectFrom("network_days")
      .select(({ fn }) => ["provider", fn.sum<number | bigint>("cost_nano").as("cost")])
      .where("day", "=", day)
      .groupBy("provider")
      .execute();
    return new Map(rows.map(({ provider, cost }) => [provider, BigInt(cost)]));
  }

  async hours(sinceHour: number): Promise<NetworkBucket[]> {
    const rows = await this.hoursQuery(sinceHour).execute();
    return rows.map(({ bucket, tokens, requests }) => ({
      bucket,
      tokens: Number(tokens),
      requests: Number(requests),
    }));
  }

  async days(sinceDay: number): Promise<NetworkBucket[]> {
    const rows = await this.daysQuery(sinceDay).execute();
    return rows.map((row) => ({
      bucket: row.bucket,
      tokens: Number(row.prompt_tokens) + Number(row.completion_tokens),
      requests: Number(row.requests),
    }));
  }

  async models(sinceDay: number): Promise<ModelTotals[]> {
    const rows = await this.modelsQuery(sinceDay).execute();
    return rows.map((row) => ({
      model: row.model,
      requests: Number(row.requests),
      prompt_tokens: Number(row.prompt_tokens),
      completion_tokens: Number(row.completion_tokens),
      cached_tokens: Number(row.cached_tokens),
      reasoning_tokens: Number(row.reasoning_tokens),
    }));
  }
}
