import { type Clock, dayMs, hourMs, isoOrNull } from "../platform/kernel/clock.ts";
import type { NetworkStore, ModelTotals, NetworkBucket } from "./network-store.ts";

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
  private record = emptyRecord;

  constructor(
    private readonly options: { store: NetworkStore; clock: Clock; describe: DescribeModel },
  ) {}

  /** Returns the contract's record, which is empty before the first refresh. */
  current(): NetworkRecord {
    return this.record;
  }

  /** Reads the counters again. */
  async refresh(): Promise<void> {
    const { store, clock, describe } = this.options;
    await store.caughtUp();
    const nowMs = clock.nowMs();
    const [hour, day] = [Math.floor(nowMs / hourMs), Math.floor(nowMs / dayMs)];
    const [hours, days, models] = await Promise.all([
      store.hours(hour - hoursShown + 1),
      store.days(day - daysCovered + 1),
      store.models(day - daysCovered + 1),
    ]);
    const month = filled(days, { last: day, count: daysCovered, textOf: dayText });
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
