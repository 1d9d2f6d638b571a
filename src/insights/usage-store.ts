import { type Kysely, type RawBuilder, sql } from "kysely";
import { dayMs, hourMs } from "../platform/lib/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { UsageSums, UsageTables } from "./usage-rollup.ts";

/** Lengths of buckets in milliseconds. */
export const intervals = { hour: hourMs, day: dayMs } as const;
/** What usage can be told apart by. */
export const usageGroups = ["model", "key_id", "provider"] as const;

/** A length of buckets, and a thing to tell usage apart by. */
export type UsageInterval = keyof typeof intervals;
export type UsageGroup = (typeof usageGroups)[number];

/** Counter rows that one query may read: about 50 ms of work, whoever asks for whatever. */
const rowsReadMax = 100_000;
/** Rows that one answer may have: a few megabytes. */
const rowsAnsweredMax = 10_000;

/** Which counters are summed up; whole buckets that overlap the range. */
export interface UsageQuery {
  workspaceId: string;
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  interval: UsageInterval;
  groupBy: readonly UsageGroup[];
}

/** Sums of one bucket and, of what was asked for, of one model, key and provider. */
export interface UsageLine extends UsageSums {
  /** Wall time at which the bucket begins, in milliseconds. */
  startMs: number;
  model?: string;
  key_id?: string;
  provider?: string;
  costNanoUsd: bigint;
}

const sumNames = ["requests", "errors", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"] as const;

/** Reads of a workspace's usage counters; they are written with each settlement. */
export class UsageStore {
  private readonly database: Kysely<UsageTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<UsageTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /** Sums by bucket and group, oldest first; undefined when the range holds more than one answer may read or say. */
  async sums(query: UsageQuery): Promise<UsageLine[] | undefined> {
    // Free requests do not wait for their rows, and their caller may ask before they are written.
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const { rows } = await sumsSql(query).execute(this.database);
    const read = rows.reduce((sum, { rows_read: count }) => sum + Number(count), 0);
    if (read > rowsReadMax || rows.length > rowsAnsweredMax) return undefined;
    return rows.map((row) => lineOf(row, intervals[query.interval]));
  }

  /** Deletes hours that are older than a wall time, a day's worth of hours at a time; days are kept. */
  async deleteHoursBefore(workspaceId: string, beforeMs: number): Promise<void> {
    const keptHour = Math.floor(beforeMs / hourMs);
    for (;;) {
      const oldest = await this.database.selectFrom("usage_hours").select("hour")
        .where("workspace_id", "=", workspaceId).where("hour", "<", keptHour).orderBy("hour").limit(1).executeTakeFirst();
      if (oldest === undefined) return;
      await this.database.deleteFrom("usage_hours")
        .where("workspace_id", "=", workspaceId).where("hour", "<", Math.min(keptHour, oldest.hour + 24)).execute();
    }
  }

  /** Deletes the hours of the whole service that are older than a wall time. */
  async deleteNetworkHoursBefore(beforeMs: number): Promise<void> {
    await this.database.deleteFrom("network_hours").where("hour", "<", Math.floor(beforeMs / hourMs)).execute();
  }
}

interface SumsRow extends UsageSums, Partial<Record<UsageGroup, string>> {
  bucket: number;
  cost_nano: number | bigint;
  rows_read: number;
}

/** What `sums` asks the database: a range of the primary key, cut where it becomes too much. */
export function sumsSql({ workspaceId, fromMs, toMs, interval, groupBy }: UsageQuery): RawBuilder<SumsRow> {
  const [table, bucket] = interval === "hour" ? ["usage_hours", "hour"] : ["usage_days", "day"];
  const lengthMs = intervals[interval];
  const summed = [...sumNames, "cost_nano"].map((name) => sql`sum(${sql.ref(name)}) as ${sql.ref(name)}`);
  const keys = sql.join(["bucket", ...groupBy].map((name) => sql.ref(name)));
  return sql<SumsRow>`
    select ${keys}, ${sql.join(summed)}, count(*) as rows_read
    from (
      select ${sql.ref(bucket)} as bucket, ${sql.join([...usageGroups, ...sumNames, "cost_nano"].map((name) => sql.ref(name)))}
      from ${sql.table(table)}
      where workspace_id = ${workspaceId} and ${sql.ref(bucket)} >= ${Math.floor(fromMs / lengthMs)}
        and ${sql.ref(bucket)} < ${Math.ceil(toMs / lengthMs)}
      limit ${rowsReadMax + 1}
    ) as counted
    group by ${keys} order by ${keys} limit ${rowsAnsweredMax + 1}`;
}

const lineOf = ({ bucket, cost_nano: cost, ...row }: SumsRow, lengthMs: number): UsageLine => ({
  startMs: bucket * lengthMs,
  ...(row.model === undefined ? {} : { model: row.model }),
  ...(row.key_id === undefined ? {} : { key_id: row.key_id }),
  ...(row.provider === undefined ? {} : { provider: row.provider }),
  requests: Number(row.requests),
  errors: Number(row.errors),
  prompt_tokens: Number(row.prompt_tokens),
  completion_tokens: Number(row.completion_tokens),
  cached_tokens: Number(row.cached_tokens),
  reasoning_tokens: Number(row.reasoning_tokens),
  costNanoUsd: BigInt(cost),
});
