import { type Kysely, type RawBuilder, sql } from "kysely";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { StorageKind } from "../../platform/storage/storage.ts";
import type { UsageSums, UsageTables } from "./usage-rollup.ts";

/** Lengths of buckets in milliseconds. */
export const intervals = { hour: hourMs, day: dayMs } as const;
/** The fields by which usage can be grouped. */
export const usageGroups = ["model", "key_id", "provider"] as const;

/** The length of buckets, and the group of usage. */
type UsageInterval = keyof typeof intervals;
export type UsageGroup = (typeof usageGroups)[number];

/**
 * The most counter rows that one query may read: about 50 ms of work, for any caller and any range.
 */
const rowsReadMax = 50_000;
/** The most rows of one answer: a few megabytes. */
export const rowsAnsweredMax = 10_000;

/** The counters to sum, in whole buckets that overlap the range. */
export interface UsageQuery {
  workspaceId: string;
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  interval: UsageInterval;
  groupBy: readonly UsageGroup[];
  /** Sums over the whole range, in one bucket that begins at the epoch; needs a group. */
  whole?: true;
}

/** The sums of one bucket and, where grouped, of one model, key or provider. */
export interface UsageLine extends UsageSums {
  /** The wall time at which the bucket begins, in milliseconds. */
  startMs: number;
  model?: string;
  key_id?: string;
  provider?: string;
  /** Of lines that are summed from records; empty where the request named none. */
  team_id?: string;
  app?: string;
  customer?: string;
  preset_id?: string;
  session_id?: string;
  /** The value of the tag that was asked for. */
  tag?: string;
  costNanoUsd: bigint;
}

const sumNames = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
] as const;

/** Reads a workspace's usage counters. They are written with each settlement. */
export class UsageStore {
  private readonly database: Kysely<UsageTables>;
  private readonly commits: CommitQueue;
  private readonly kind: StorageKind;

  constructor(options: { database: Kysely<UsageTables>; commits: CommitQueue; kind: StorageKind }) {
    this.database = options.database;
    this.commits = options.commits;
    this.kind = options.kind;
  }

  /**
   * Returns sums by bucket and group, oldest first; undefined when the range exceeds what one
   * answer may read or hold.
   */
  async sums(query: UsageQuery): Promise<UsageLine[] | undefined> {
    // Free requests do not wait for their rows, and their caller may ask before they are written.
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const {
      rows: [row],
    } = await linesSql(query, this.kind).execute(this.database);
    const lines = JSON.parse(row?.lines ?? "[]") as (string | number)[][];
    // A range that is too large yields no rows, so only then is its size checked.
    if (lines.length > rowsAnsweredMax || (lines.length === 0 && (await this.isTooMuch(query))))
      return undefined;
    return lines.map((line) => lineOf(line, query));
  }

  private async isTooMuch(query: UsageQuery): Promise<boolean> {
    const {
      rows: [row],
    } = await sql<{ count: number | string }>`select ${countSql(query)} as count`.execute(
      this.database,
    );
    return Number(row?.count ?? 0) > rowsReadMax;
  }

  /**
   * Deletes hours that are older than a wall time, a day's worth of hours at a time. Days are kept.
   */
  async deleteHoursBefore(workspaceId: string, beforeMs: number): Promise<void> {
    const keptHour = Math.floor(beforeMs / hourMs);
    for (;;) {
      const oldest = await this.database
        .selectFrom("usage_hours")
        .select("hour")
        .where("workspace_id", "=", workspaceId)
        .where("hour", "<", keptHour)
        .orderBy("hour")
        .limit(1)
        .executeTakeFirst();
      if (oldest === undefined) return;
      await this.database
        .deleteFrom("usage_hours")
        .where("workspace_id", "=", workspaceId)
        .where("hour", "<", Math.min(keptHour, oldest.hour + 24))
        .execute();
    }
  }

  /** Deletes the hours of the whole service that are older than a wall time. */
  async deleteNetworkHoursBefore(beforeMs: number): Promise<void> {
    await this.database
      .deleteFrom("network_hours")
      .where("hour", "<", Math.floor(beforeMs / hourMs))
      .execute();
  }
}

interface SumsRow extends UsageSums, Partial<Record<UsageGroup, string>> {
  bucket: number;
  cost_nano: number | bigint;
}

/** Returns the table that has the requested counters in the fewest rows, and its bucket column. */
const tableOf = ({ interval, groupBy }: UsageQuery): [table: string, bucket: string] =>
  interval === "hour"
    ? ["usage_hours", "hour"]
    : [groupBy.includes("provider") ? "usage_days" : "usage_key_days", "day"];

/** Returns a range of the primary key. */
function rangeSql(query: UsageQuery): RawBuilder<unknown> {
  const { workspaceId, fromMs, toMs, interval } = query;
  const [table, bucket] = tableOf(query);
  const lengthMs = intervals[interval];
  return sql`from ${sql.table(table)} where workspace_id = ${workspaceId}
    and ${sql.ref(bucket)} >= ${Math.floor(fromMs / lengthMs)} and ${sql.ref(bucket)} < ${Math.ceil(toMs / lengthMs)}`;
}

/**
 * Returns the query for how many rows a query would read; it stops counting where there are too
 * many.
 */
const countSql = (query: UsageQuery): RawBuilder<unknown> =>
  sql`(select count(*) from (select 1 ${rangeSql(query)} limit ${rowsReadMax + 1}) as counted)`;

/** The order of the primary key. A prefix of it can be grouped without sorting. */
const keyOrder = ["key_id", "model", "provider"] as const satisfies readonly UsageGroup[];

/**
 * Returns the query of `sums`: a range of the primary key, which yields nothing where it has too
 * many rows.
 */
export function sumsSql(query: UsageQuery): RawBuilder<SumsRow> {
  const [, bucket] = tableOf(query);
  const groups = keyOrder.filter((name) => query.groupBy.includes(name));
  const summed = [...sumNames, "cost_nano"].map(
    (name) => sql`sum(${sql.ref(name)}) as ${sql.ref(name)}`,
  );
  const names = groups.map((name) => sql.ref(name));
  const named = [query.whole ? sql`0 as bucket` : sql`${sql.ref(bucket)} as bucket`, ...names];
  const grouped = sql.join(query.whole ? names : [sql.ref(bucket), ...names]);
  const ordered = sql.join(["bucket", ...query.groupBy].map((name) => sql.ref(name)));
  return sql<SumsRow>`
    select * from (
      select ${sql.join([...named, ...summed])} ${rangeSql(query)} and ${countSql(query)} <= ${rowsReadMax} group by ${grouped}
    ) as summed order by ${ordered} limit ${rowsAnsweredMax + 1}`;
}

/**
 * Returns the same query with its rows as one text: thousands of rows pass between threads in half
 * the time.
 */
function linesSql(query: UsageQuery, kind: StorageKind): RawBuilder<{ lines: string | null }> {
  const names = ["bucket", ...query.groupBy, ...sumNames].map((name) => sql.ref(name));
  // As text, since it may exceed the exact range of JSON numbers.
  const columns = sql.join([...names, sql`cast(cost_nano as text)`]);
  const lines =
    kind === "sqlite"
      ? sql`json_group_array(json_array(${columns}))`
      : sql`json_agg(json_build_array(${columns}))::text`;
  return sql`select ${lines} as lines from (${sumsSql(query)}) as line`;
}

/** Returns the line for the bucket, the groups and the sums of a row. */
export function lineOf(
  [bucket, ...cells]: readonly (string | number)[],
  { interval, groupBy }: UsageQuery,
): UsageLine {
  const [requests, errors, prompt, completion, cached, reasoning, cost] = cells.slice(
    groupBy.length,
  );
  const line: UsageLine = {
    startMs: Number(bucket) * intervals[interval],
    requests: Number(requests),
    errors: Number(errors),
    prompt_tokens: Number(prompt),
    completion_tokens: Number(completion),
    cached_tokens: Number(cached),
    reasoning_tokens: Number(reasoning),
    costNanoUsd: BigInt(cost ?? 0),
  };
  groupBy.forEach((name, index) => {
    line[name] = String(cells[index]);
  });
  return line;
}
