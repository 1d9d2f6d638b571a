import { sql, type RawBuilder } from "kysely";
import { minuteMs } from "../platform/kernel/clock.ts";
import {
  generationIdOf,
  idAfter,
  lowestIdAt,
  recordOfRow,
  timeOfId,
  type GenerationRecord,
  type GenerationTables,
  type RecordSource,
} from "./generation-record.ts";
import {
  conditionOf,
  isUnfinished,
  newerOf,
  olderOf,
  pageOf,
  rowsReadMax,
  type GenerationFilter,
  type GenerationPage,
  type GenerationPageQuery,
} from "./generation-search.ts";
import { errorCatalog } from "../platform/kernel/errors.ts";

/** Returns the HTTP status of an error code; 0 where there is no such code. */
export const statusOf = (code: string): number =>
  Object.entries(errorCatalog).find(([name]) => name === code)?.[1].status ?? 0;

/**
 * Returns whether refused requests can match a filter. Of a refused request only the key and the
 * code are known, and its status is failed.
 */
export function matchesRefused({
  keyIds: _,
  errors: __,
  statuses,
  ...others
}: GenerationFilter): boolean {
  const isFailed = statuses === undefined || statuses.includes("failed");
  return isFailed && Object.values(others).every((value) => value === undefined);
}

/** The query of a page of requests of the whole service, newest first. */
interface ServicePageQuery extends Omit<GenerationPageQuery, "workspaceId"> {
  /** The workspaces whose requests are requested; undefined for all. */
  workspaceIds?: readonly string[] | undefined;
}

interface Window extends Pick<ServicePageQuery, "workspaceIds" | "filter"> {
  low: string;
  /** Exclusive. */
  end: string;
  /** The most rows that are read of one workspace, and in all. */
  limit: number;
}

/**
 * The time span in which a page is searched at first, and the factor by which the next one grows.
 */
const firstSpanMs = minuteMs;

const spanGrowth = 8;

/** The most records of one span, unless it is the shortest. */
const stretchRows = 15_000;

/**
 * Finds requests across workspaces, for operators. Records are ordered by workspace and time. There
 * is no index by time alone, since every commit would have to write it: a time span is a range of
 * the primary key for each workspace.
 */
export class ServiceRequests {
  constructor(private readonly source: RecordSource) {}

  /**
   * Returns a page of the requests that meet the filter. One with `next` may have fewer than
   * `limit` records where few of many meet it.
   */
  async page(query: ServicePageQuery): Promise<GenerationPage> {
    if (this.source.commits.pendingCount > 0) await this.source.commits.flush();
    const lowest = lowestIdAt(query.fromMs);
    const records: GenerationRecord[] = [];
    let end = olderOf(query.after, lowestIdAt(query.toMs));
    let spanMs: number = firstSpanMs;
    for (let rowsLeft = rowsReadMax; end > lowest; ) {
      if (rowsLeft <= 0) return { records, next: end };
      const low = newerOf(lowest, lowestIdAt(timeOfId(end) - spanMs));
      const window = { ...query, low, end };
      const rows = await this.count({ ...window, limit: stretchRows + 1 });
      if (rows > stretchRows && spanMs > firstSpanMs) {
        spanMs /= spanGrowth;
        continue;
      }
      rowsLeft -= rows;
      if (rows > 0)
        records.push(...(await this.read({ ...window, limit: query.limit + 1 - records.length })));
      if (records.length > query.limit) return pageOf(records, query.limit);
      end = low;
      spanMs *= spanGrowth;
    }
    return { records, next: undefined };
  }

  /** Returns a request of any workspace by any form of its id. */
  async find(id: string): Promise<GenerationRecord | undefined> {
    const low = generationIdOf(id);
    const end = idAfter(low);
    if (end === undefined) return undefined;
    if (this.source.commits.pendingCount > 0) await this.source.commits.flush();
    const [record] = await this.read({ low, end, filter: {}, limit: 1 });
    return record;
  }

  /** Returns the query of a time span: a range of the primary key for each workspace. */
  stretchSql(window: Window): RawBuilder<GenerationTables["generations"]> {
    return sql`select * from (${this.rowsSql(window, sql`generations.*`)}) as found
      order by id desc limit ${sql.lit(window.limit)}`;
  }

  private async read(window: Window): Promise<GenerationRecord[]> {
    return (await this.stretchSql(window).execute(this.source.database)).rows.map(recordOfRow);
  }

  /** Returns the number of records in a span, before any filter but the one that has an index. */
  private async count({ filter, ...window }: Window): Promise<number> {
    const rows = this.rowsSql(
      {
        ...window,
        filter: isUnfinished(filter) ? { statuses: filter.statuses ?? ["failed"] } : {},
      },
      sql`id`,
    );
    const {
      rows: [counted],
    } = await sql<{ rows: number | string }>`
      select count(*) as rows from (select 1 from (${rows}) as stretch limit ${sql.lit(window.limit)}) as counted`.execute(
      this.source.database,
    );
    return Number(counted?.rows ?? 0);
  }

  private rowsSql(
    { workspaceIds, filter, low, end, limit }: Window,
    columns: RawBuilder<unknown>,
  ): RawBuilder<unknown> {
    const owners = sql`(select id as owner_id from workspaces where ${
      workspaceIds === undefined ? sql`1 = 1` : sql`id in (${sql.join(workspaceIds)})`
    }) as owners`;
    const unfinished = isUnfinished(filter) ? sql`status <> 'completed' and` : sql``;
    const wanted = conditionOf(filter, this.source.kind);
    const condition = sql`${unfinished} workspace_id = owner_id and id >= ${low} and id < ${end} and ${wanted}`;
    // Both forms make the planner go from the workspaces to their records.
    return this.source.kind === "sqlite"
      ? sql`select ${columns} from ${owners} cross join generations ${
          isUnfinished(filter) ? sql`indexed by generations_unfinished` : sql``
        } where ${condition}`
      : sql`select own.* from ${owners} cross join lateral (
          select ${columns} from generations where ${condition} order by id desc limit ${sql.lit(limit)}) as own`;
  }
}
