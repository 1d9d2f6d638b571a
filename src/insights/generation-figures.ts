import { type RawBuilder, sql } from "kysely";
import { dayMs, hourMs, minuteMs } from "../platform/kernel/clock.ts";
import {
  conditionOf,
  detailText,
  isCountable,
  rowsReadMax,
  type GenerationRange,
} from "./generation-search.ts";
import {
  lowestIdAt,
  timeOfId,
  type GenerationTables,
  type RecordSource,
} from "./generation-record.ts";
import type { UsageTables } from "./usage/usage-rollup.ts";

/** The most buckets of one answer. */
const bucketsMax = 120;
/**
 * Possible lengths of buckets in milliseconds. The shortest one with which a range has few enough
 * buckets is used.
 */
const bucketLengths = [
  minuteMs,
  5 * minuteMs,
  15 * minuteMs,
  hourMs,
  3 * hourMs,
  6 * hourMs,
  12 * hourMs,
  dayMs,
  7 * dayMs,
  30 * dayMs,
  365 * dayMs,
] as const;
/** Milliseconds for which hourly counters are kept; older ones are kept by the day. */
const hoursKeptMs = 31 * dayMs;

/** Sums over the records of one time bucket. */
export interface FigureBucket {
  startMs: number;
  requests: number;
  /** Requests that ended without a whole answer, except where the client left. */
  errors: number;
  tokens: number;
  costNanoUsd: bigint;
}

/** A histogram, and whether all records of the range were read. */
export interface Histogram {
  bucketMs: number;
  buckets: FigureBucket[];
  /** The wall time from which on records were read, where the range has more than may be read. */
  countedFromMs: number | undefined;
}

/** Requests that ended alike: with the same status and code, at the same provider and model. */
export interface ErrorLine {
  status: string;
  /** Null where the answer was cut or the client left. */
  code: string | null;
  httpStatus: number | null;
  provider: string;
  model: string;
  requests: number;
  lastAtMs: number;
}

/** The latencies of one bucket, from a sample of its requests. */
export interface LatencyBucket {
  startMs: number;
  samples: number;
  latencyMs: readonly number[];
  firstTokenMs: readonly number[];
}

interface SumsRow {
  bucket: number | string;
  requests: number | string;
  errors: number | string;
  tokens: number | string;
  cost_nano: number | string | bigint;
}

interface ErrorRow extends Record<"status" | "provider" | "model", string> {
  code: string | null;
  http_status: string | number | null;
  requests: number | string;
  last_at_ms: number | string;
}

/**
 * The slices of a bucket from whose beginnings its latencies are sampled, and the records of each.
 */
export const slicesPerBucket = 4;
export const samplesPerSlice = 200;
const latencyBucketsMax = 60;
/** The most lines of an answer about errors. */
export const errorLinesMax = 200;

/** Returns the shortest length of buckets with which a range has few enough. */
const lengthFor = (rangeMs: number, most: number): number =>
  bucketLengths.find((length) => rangeMs / length <= most - 1) ?? 365 * dayMs;

/**
 * Computes figures over generation records: from counters where those suffice, or else from a
 * bounded number of records.
 */
export class GenerationFigures {
  constructor(private readonly source: RecordSource<GenerationTables & UsageTables>) {}

  /** Returns requests, errors, tokens and cost by buckets of a length that fits the range. */
  async histogram(range: GenerationRange, nowMs: number): Promise<Histogram> {
    await this.caughtUp();
    const bucketMs = this.bucketMsOf(range);
    const countable = isCountable(range.filter);
    const hoursMs = Math.max(hourMs, bucketMs);
    const countedMs = range.fromMs < nowMs - hoursKeptMs ? Math.max(dayMs, hoursMs) : hoursMs;
    if (countable && bucketMs >= hourMs) return this.fromCounters(range, countedMs);
    const found = await this.fromRecords(range, bucketMs);
    return countable && found.countedFromMs !== undefined
      ? this.fromCounters(range, countedMs)
      : found;
  }

  /** Resolves when everything that was settled before can be read. */
  protected async caughtUp(): Promise<void> {
    if (this.source.commits.pendingCount > 0) await this.source.commits.flush();
  }

  /** Returns the length of a histogram's buckets. */
  protected bucketMsOf({ fromMs, toMs }: GenerationRange): number {
    return lengthFor(toMs - fromMs, bucketsMax);
  }

  /** Returns the length of the latencies' buckets. */
  protected latencyBucketMsOf({ fromMs, toMs }: GenerationRange): number {
    return lengthFor(toMs - fromMs, latencyBucketsMax);
  }

  /**
   * Sums counters up by the unit in which they are kept, which is the order of their key, and the
   * units into buckets here: for groups of another order the database sorts every row.
   */
  private async fromCounters(range: GenerationRange, bucketMs: number): Promise<Histogram> {
    const [table, unit, unitMs] =
      bucketMs < dayMs
        ? (["usage_hours", "hour", hourMs] as const)
        : (["usage_days", "day", dayMs] as const);
    const { rows } = await sql<SumsRow>`
      select ${sql.ref(unit)} as bucket, sum(requests) as requests, sum(errors) as errors,
        sum(prompt_tokens + completion_tokens) as tokens, sum(cost_nano) as cost_nano
      from ${sql.table(table)} where workspace_id = ${range.workspaceId}
        and ${sql.ref(unit)} >= ${Math.floor(range.fromMs / unitMs)} and ${sql.ref(unit)} < ${Math.ceil(range.toMs / unitMs)}
        and ${conditionOf(range.filter, this.source.kind)}
      group by ${sql.ref(unit)} order by ${sql.ref(unit)}`.execute(this.source.database);
    const buckets = folded(
      rows.map((row) => bucketOf(row, unitMs)),
      bucketMs,
    );
    return { bucketMs, buckets, countedFromMs: undefined };
  }

  /** Computes a histogram from the newest records of a range. */
  protected async fromRecords(range: GenerationRange, bucketMs: number): Promise<Histogram> {
    const { rows } = await sql<SumsRow>`
      select created_at_ms / ${sql.lit(bucketMs)} as bucket, count(*) as requests,
        sum(case when status in ('cut', 'failed') then 1 else 0 end) as errors, sum(prompt_tokens + completion_tokens) as tokens,
        sum(cost_nano) as cost_nano
      from ${this.newest(range)} where ${conditionOf(range.filter, this.source.kind)} group by 1 order by 1`.execute(
      this.source.database,
    );
    return {
      bucketMs,
      buckets: rows.map((row) => bucketOf(row, bucketMs)),
      countedFromMs: await this.countedFrom(range),
    };
  }

  /** Selects the newest records of a range, as many as may be read. */
  private newest({ workspaceId, fromMs, toMs }: GenerationRange): RawBuilder<unknown> {
    return sql`(select * from generations where workspace_id = ${workspaceId} and id >= ${lowestIdAt(fromMs)} and id < ${lowestIdAt(toMs)}
      order by id desc limit ${sql.lit(rowsReadMax)}) as newest`;
  }

  private async countedFrom(range: GenerationRange): Promise<number | undefined> {
    const {
      rows: [row],
    } = await sql<{ id: string }>`
      select id from generations where workspace_id = ${range.workspaceId} and id >= ${lowestIdAt(range.fromMs)}
        and id < ${lowestIdAt(range.toMs)} order by id desc limit 1 offset ${sql.lit(rowsReadMax)}`.execute(
      this.source.database,
    );
    return row && timeOfId(row.id);
  }

  /** Returns errors, most frequent first, from the newest records that did not complete. */
  async errors({ workspaceId, fromMs, toMs, filter }: GenerationRange): Promise<ErrorLine[]> {
    await this.caughtUp();
    const { rows } = await sql<ErrorRow>`
      select status, ${detailText(this.source.kind, "error.code")} as code, ${detailText(this.source.kind, "error.status")} as http_status,
        provider, model, count(*) as requests, max(created_at_ms) as last_at_ms
      from (select * from generations ${sql.raw(this.source.kind === "sqlite" ? "indexed by generations_unfinished" : "")}
        where workspace_id = ${workspaceId} and id >= ${lowestIdAt(fromMs)} and id < ${lowestIdAt(toMs)}
        and status <> 'completed' order by id desc limit ${sql.lit(rowsReadMax)}) as unfinished
      where status <> 'cached' and ${conditionOf(filter, this.source.kind)}
      group by 1, 2, 3, 4, 5 order by requests desc, last_at_ms desc limit ${sql.lit(errorLinesMax)}`.execute(
      this.source.database,
    );
    return rows.map(errorLineOf);
  }

  /**
   * Returns the latencies of completed requests by bucket, in ascending order, sampled from four
   * slices of each bucket.
   */
  async latencies(range: GenerationRange): Promise<{ bucketMs: number; buckets: LatencyBucket[] }> {
    const bucketMs = this.latencyBucketMsOf(range);
    return { bucketMs, buckets: await this.sampledBuckets(range, bucketMs) };
  }

  /** Returns the latencies of a range by buckets of this length. */
  protected async sampledBuckets(
    range: GenerationRange,
    bucketMs: number,
  ): Promise<LatencyBucket[]> {
    await this.caughtUp();
    const starts: number[] = [];
    for (
      let startMs = Math.floor(range.fromMs / bucketMs) * bucketMs;
      startMs < range.toMs;
      startMs += bucketMs
    )
      starts.push(startMs);
    const buckets = await Promise.all(
      starts.map((startMs) => this.sampled({ range, startMs, bucketMs })),
    );
    return buckets.filter(({ samples }) => samples > 0);
  }

  private async sampled({
    range,
    startMs,
    bucketMs,
  }: {
    range: GenerationRange;
    startMs: number;
    bucketMs: number;
  }): Promise<LatencyBucket> {
    const sliceMs = bucketMs / slicesPerBucket;
    const slices = Array.from({ length: slicesPerBucket }, (_, index) => {
      const fromMs = Math.max(range.fromMs, startMs + index * sliceMs);
      const toMs = Math.min(range.toMs, startMs + (index + 1) * sliceMs);
      return sql`select * from (select * from generations where workspace_id = ${range.workspaceId} and id >= ${lowestIdAt(fromMs)}
        and id < ${lowestIdAt(toMs)} order by id limit ${sql.lit(samplesPerSlice)}) as slice`;
    });
    const { rows } = await sql<{
      latency_ms: number | string;
      first_token_ms: number | string | null;
    }>`
      select latency_ms, first_token_ms from (${sql.join(slices, sql` union all `)}) as sample
      where status = 'completed' and ${conditionOf(range.filter, this.source.kind)}`.execute(
      this.source.database,
    );
    const ascending = (one: number, other: number): number => one - other;
    const streamed = rows.flatMap(({ first_token_ms: ms }) => (ms === null ? [] : [Number(ms)]));
    return {
      startMs,
      samples: rows.length,
      latencyMs: rows.map((row) => Number(row.latency_ms)).sort(ascending),
      firstTokenMs: streamed.sort(ascending),
    };
  }
}

/** Sums buckets up into longer ones; both in ascending order. */
function folded(units: readonly FigureBucket[], bucketMs: number): FigureBucket[] {
  const buckets: FigureBucket[] = [];
  for (const unit of units) {
    const startMs = Math.floor(unit.startMs / bucketMs) * bucketMs;
    const last = buckets.at(-1);
    if (last?.startMs !== startMs) {
      buckets.push({ ...unit, startMs });
      continue;
    }
    last.requests += unit.requests;
    last.errors += unit.errors;
    last.tokens += unit.tokens;
    last.costNanoUsd += unit.costNanoUsd;
  }
  return buckets;
}

/** Returns the error line of a row of either store. */
export const errorLineOf = ({
  http_status: httpStatus,
  last_at_ms: lastAtMs,
  requests,
  ...line
}: ErrorRow): ErrorLine => ({
  ...line,
  httpStatus: httpStatus === null ? null : Number(httpStatus),
  requests: Number(requests),
  lastAtMs: Number(lastAtMs),
});

/** Returns the bucket of a row of either store. */
export const bucketOf = (row: SumsRow, bucketMs: number): FigureBucket => ({
  startMs: Number(row.bucket) * bucketMs,
  requests: Number(row.requests),
  errors: Number(row.errors),
  tokens: Number(row.tokens),
  costNanoUsd: BigInt(row.cost_nano),
});
