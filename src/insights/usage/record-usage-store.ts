import { type RawBuilder, sql } from "kysely";
import { lowestIdAt, timeOfId, type RecordSource } from "../generation-record.ts";
import { detailText, rowsReadMax } from "../generation-search.ts";
import {
  intervals,
  rowsAnsweredMax,
  type UsageGroup,
  type UsageLine,
  type UsageQuery,
} from "./usage-store.ts";

/** What records know of their sender, by the name of the group. */
const recordMembers = {
  team_id: "team",
  app: "appTitle",
  customer: "externalUser",
  preset_id: "presetId",
  session_id: "sessionId",
} as const;

/** A group that only records know; `tag` is a member of the requests' metadata. */
export type RecordGroup = keyof typeof recordMembers | "tag";
/** The names of these groups. */
export const recordGroupNames = [
  "team_id",
  "app",
  "customer",
  "preset_id",
  "session_id",
  "tag",
] as const;

/** The records to sum, in whole buckets that overlap the range. */
export interface RecordUsageQuery
  extends Pick<UsageQuery, "workspaceId" | "fromMs" | "toMs" | "interval"> {
  groupBy: readonly (UsageGroup | RecordGroup)[];
  /** The name of the tag, where it is among the groups. */
  tag: string | undefined;
}

/** Sums of records; `countedFromMs` is where the newest ones that may be read begin, if not all. */
export interface RecordUsage {
  lines: UsageLine[];
  countedFromMs: number | undefined;
}

/** How much of a part of usage the records of a range have, at one price. */
export interface PartSum {
  /** The model, provider or key of the records, where they are divided by one. */
  group: string | undefined;
  /** A part of usage, or `request` for the requests themselves. */
  part: string;
  quantity: number;
  /** The records that have some of it. */
  requests: number;
  /** The price as records keep it; undefined where nothing was charged. */
  price: Readonly<Record<string, string>> | undefined;
}

interface PartRow extends Record<string, unknown> {
  part: string;
  divided_by: string | null;
  price: string | null;
}

interface SumsRow extends Record<string, unknown> {
  bucket: number | string;
  cost_nano: number | string | bigint;
}

/** Sums a workspace's usage by what only its records know: at most the newest `rowsReadMax`. */
export class RecordUsageStore {
  constructor(private readonly source: RecordSource) {}

  /** Returns sums by bucket and group, oldest first; undefined when an answer cannot hold them. */
  async sums(query: RecordUsageQuery): Promise<RecordUsage | undefined> {
    if (this.source.commits.pendingCount > 0) await this.source.commits.flush();
    const lengthMs = intervals[query.interval];
    const { rows } = await this.sumsSql(query, lengthMs).execute(this.source.database);
    if (rows.length > rowsAnsweredMax) return undefined;
    return {
      lines: rows.map((row) => lineOf(row, query)),
      countedFromMs: await this.countedFrom(query.workspaceId, {
        low: lowestIdAt(startOf(query, lengthMs)),
        end: lowestIdAt(endOf(query, lengthMs)),
      }),
    };
  }

  /**
   * Returns the parts of usage of a range, each price by itself and each group where they are
   * divided, in one read of at most `rowsReadMax` records.
   */
  async parts({
    group,
    ...range
  }: Pick<RecordUsageQuery, "workspaceId" | "fromMs" | "toMs"> & {
    group?: UsageGroup | undefined;
  }): Promise<{ sums: PartSum[]; countedFromMs: number | undefined }> {
    if (this.source.commits.pendingCount > 0) await this.source.commits.flush();
    const window = { low: lowestIdAt(range.fromMs), end: lowestIdAt(range.toMs) };
    const { rows } = await this.partsSql(range.workspaceId, window, group).execute(
      this.source.database,
    );
    return {
      sums: rows.map(({ part, divided_by: named, price, ...row }) => ({
        part,
        group: named ?? undefined,
        quantity: Number(row["quantity"]),
        requests: Number(row["requests"]),
        price: price === null ? undefined : (JSON.parse(price) as Record<string, string>),
      })),
      countedFromMs: await this.countedFrom(range.workspaceId, window),
    };
  }

  private partsSql(
    workspaceId: string,
    { low, end }: { low: string; end: string },
    group: UsageGroup | undefined,
  ): RawBuilder<PartRow> {
    const divided = group === undefined ? sql`null` : sql.ref(group);
    const within = sql`from generations
      where workspace_id = ${workspaceId} and id >= ${low} and id < ${end}
      order by id desc limit ${sql.lit(rowsReadMax)}`;
    // Each record has a part for itself, since some are charged by the request.
    const lines =
      this.source.kind === "sqlite"
        ? sql`(select ${divided} as divided_by, detail, case when cost_nano > 0 and json_extract(detail, '$.credentialSource') is null
            then json_extract(detail, '$.price') end as price ${within}) as newest,
          json_each(json_set(coalesce(json_extract(detail, '$.usage'), '{}'), '$.request', 1)) as line`
        : sql`(select divided_by, document, case when cost_nano > 0 and document ->> 'credentialSource' is null
            then document ->> 'price' end as price
            from (select cast(${divided} as text) as divided_by, cost_nano,
              case when position('\\u0000' in detail) = 0 then detail::json end as document
              ${within}) as newest) as charged,
          lateral (select key, cast(value as bigint) as value from json_each_text(document -> 'usage')
            union all select 'request', 1) as line`;
    return sql<PartRow>`
      select line.key as part, divided_by, price, sum(line.value) as quantity,
        sum(case when line.value > 0 then 1 else 0 end) as requests
      from ${lines} group by 1, 2, 3 having sum(line.value) > 0`;
  }

  /** Returns the query of `sums`: one range of the primary key, from its end. */
  private sumsSql(query: RecordUsageQuery, lengthMs: number): RawBuilder<SumsRow> {
    const groups = query.groupBy.map(
      (group) => sql`${this.groupSql(query, group)} as ${sql.ref(group)}`,
    );
    const part = (name: string): RawBuilder<unknown> =>
      sql`sum(coalesce(cast(${detailText(this.source.kind, `usage.${name}`)} as integer), 0))`;
    const places = sql.join([sql`1`, ...query.groupBy.map((_, index) => sql.lit(index + 2))]);
    return sql<SumsRow>`
      select ${sql.join([sql`created_at_ms / ${sql.lit(lengthMs)} as bucket`, ...groups])},
        count(*) as requests, sum(case when status in ('cut', 'failed') then 1 else 0 end) as errors,
        sum(prompt_tokens) as prompt_tokens, sum(completion_tokens) as completion_tokens,
        ${part("cacheReadTokens")} as cached_tokens, ${part("reasoningTokens")} as reasoning_tokens,
        sum(cost_nano) as cost_nano
      from (select * from generations where workspace_id = ${query.workspaceId}
        and id >= ${lowestIdAt(startOf(query, lengthMs))} and id < ${lowestIdAt(endOf(query, lengthMs))}
        order by id desc limit ${sql.lit(rowsReadMax)}) as newest
      group by ${places} order by ${places} limit ${sql.lit(rowsAnsweredMax + 1)}`;
  }

  private groupSql(
    { tag }: RecordUsageQuery,
    group: UsageGroup | RecordGroup,
  ): RawBuilder<unknown> {
    if (group === "model" || group === "key_id" || group === "provider") return sql.ref(group);
    if (group !== "tag")
      return sql`coalesce(${detailText(this.source.kind, recordMembers[group])}, '')`;
    // Names of tags have dots, which are no path here.
    const value =
      this.source.kind === "sqlite"
        ? sql`json_extract(detail, ${sql.lit(`$.tags."${tag}"`)})`
        : sql`case when position('\\u0000' in detail) = 0 then detail::json -> 'tags' ->> ${sql.lit(tag ?? "")} end`;
    return sql`coalesce(${value}, '')`;
  }

  private async countedFrom(
    workspaceId: string,
    { low, end }: { low: string; end: string },
  ): Promise<number | undefined> {
    const {
      rows: [row],
    } = await sql<{ id: string }>`
      select id from generations where workspace_id = ${workspaceId}
        and id >= ${low} and id < ${end}
      order by id desc limit 1 offset ${sql.lit(rowsReadMax)}`.execute(this.source.database);
    return row && timeOfId(row.id);
  }
}

const startOf = ({ fromMs }: RecordUsageQuery, lengthMs: number): number =>
  Math.floor(fromMs / lengthMs) * lengthMs;
const endOf = ({ toMs }: RecordUsageQuery, lengthMs: number): number =>
  Math.ceil(toMs / lengthMs) * lengthMs;

/** Returns the line of a row. */
function lineOf(row: SumsRow, { interval, groupBy }: RecordUsageQuery): UsageLine {
  const line: UsageLine = {
    startMs: Number(row.bucket) * intervals[interval],
    requests: Number(row["requests"]),
    errors: Number(row["errors"]),
    prompt_tokens: Number(row["prompt_tokens"]),
    completion_tokens: Number(row["completion_tokens"]),
    cached_tokens: Number(row["cached_tokens"]),
    reasoning_tokens: Number(row["reasoning_tokens"]),
    costNanoUsd: BigInt(row.cost_nano),
  };
  for (const name of groupBy) line[name] = String(row[name]);
  return line;
}
