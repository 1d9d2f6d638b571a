import type { Kysely } from "kysely";
import { type Clock, dayMs, hourMs, isoOrNull } from "../platform/kernel/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { UsageTables } from "./usage-rollup.ts";

/**
 * Contract, "Network statistics": the number of models that are listed, and the days that totals
 * cover.
 */
const topModelsMax = 15;
const daysCovered = 30;
const weekDays = 7;
const hoursShown = 24;

/** Returns the name and owner of a model for people. */
export type DescribeModel = (modelId: string) => { name: string; provider: string } | undefined;

interface Trend {
  bucket: string;
  tokens: number;
  requests: number;
}

/** The network statistics record of the contract. */
export interface NetworkRecord {
  generated_at: string | null;
  totals: {
    tokens: number;
    requests: number;
    prompt_tokens: number;
    completion_tokens: number;
    cached_tokens: number;
    reasoning_tokens: number;
  };
  top_models: {
    model_id: string;
    model_name: string;
    provider: string;
    rank: number;
    tokens: number;
    requests: number;
    share: number;
  }[];
  trend: { "24h": Trend[]; "7d": Trend[]; "30d": Trend[] };
}

const emptyRecord: NetworkRecord = {
  generated_at: null,
  totals: {
    tokens: 0,
    requests: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    cached_tokens: 0,
    reasoning_tokens: 0,
  },
  top_models: [],
  trend: { "24h": [], "7d": [], "30d": [] },
};

/** Statistics of the whole service as of the last refresh. Reading them asks no database. */
export class NetworkStatistics {
  private readonly options: { store: NetworkStore; clock: Clock; describe: DescribeModel };
  private record = emptyRecord;
  private weekly: ReadonlyMap<string, number> = new Map();

  constructor(options: NetworkStatistics["options"]) {
    this.options = options;
  }

  /** Returns the contract's record, which is empty before the first refresh. */
  current(): NetworkRecord {
    return this.record;
  }

  /** Returns a model's requests of the last seven days, as of the last refresh. */
  volumeOf(modelId: string): number {
    return this.weekly.get(modelId) ?? 0;
  }

  /** Reads the counters again. */
  async refresh(): Promise<void> {
    const { store, clock, describe } = this.options;
    await store.caughtUp();
    const nowMs = clock.nowMs();
    const [hour, day] = [Math.floor(nowMs / hourMs), Math.floor(nowMs / dayMs)];
    const [hours, days, models, weekly] = await Promise.all([
      store.hours(hour - hoursShown + 1),
      store.days(day - daysCovered + 1),
      store.models(day - daysCovered + 1),
      store.models(day - weekDays + 1),
    ]);
    const month = filled(days, { last: day, count: daysCovered, textOf: dayText });
    this.weekly = new Map(weekly.map(({ model, requests }) => [model, requests]));
    this.record = {
      generated_at: isoOrNull(nowMs),
      totals: totalsOf(models),
      top_models: topModels(models, describe),
      trend: {
        "24h": filled(hours, { last: hour, count: hoursShown, textOf: hourText }),
        "7d": month.slice(-weekDays),
        "30d": month,
      },
    };
  }
}

const tokensOf = ({ prompt_tokens: prompt, completion_tokens: completion }: ModelTotals): number =>
  prompt + completion;

function totalsOf(models: readonly ModelTotals[]): NetworkRecord["totals"] {
  const totals = { ...emptyRecord.totals };
  for (const model of models) {
    totals.tokens += tokensOf(model);
    for (const name of [
      "requests",
      "prompt_tokens",
      "completion_tokens",
      "cached_tokens",
      "reasoning_tokens",
    ] as const) {
      totals[name] += model[name];
    }
  }
  return totals;
}

function topModels(
  models: readonly ModelTotals[],
  describe: DescribeModel,
): NetworkRecord["top_models"] {
  const all = models.reduce((sum, model) => sum + tokensOf(model), 0);
  const ordered = models.toSorted(
    (left, right) =>
      tokensOf(right) - tokensOf(left) ||
      right.requests - left.requests ||
      (left.model < right.model ? -1 : 1),
  );
  return ordered.slice(0, topModelsMax).map((totals, index) => {
    const { model: id, requests } = totals;
    // A model that has left the catalog is named by its id.
    const { name, provider } = describe(id) ?? {
      name: id,
      provider: id.slice(0, Math.max(0, id.indexOf("/"))),
    };
    const tokens = tokensOf(totals);
    const share = all === 0 ? 0 : Math.round((tokens / all) * 10_000) / 10_000;
    return { model_id: id, model_name: name, provider, rank: index + 1, tokens, requests, share };
  });
}

/**
 * Returns a row for each bucket up to the last one, also where nothing happened, so that curves
 * have no gaps.
 */
function filled(
  rows: readonly NetworkBucket[],
  { last, count, textOf }: { last: number; count: number; textOf: (bucket: number) => string },
): Trend[] {
  const byBucket = new Map(rows.map((row) => [row.bucket, row]));
  return Array.from({ length: count }, (_, index) => {
    const bucket = last - count + 1 + index;
    const { tokens = 0, requests = 0 } = byBucket.get(bucket) ?? {};
    return { bucket: textOf(bucket), tokens, requests };
  });
}

const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);
const hourText = (hour: number): string =>
  `${new Date(hour * hourMs).toISOString().slice(0, 13).replace("T", " ")}:00`;

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
