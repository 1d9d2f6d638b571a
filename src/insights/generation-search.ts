import { type RawBuilder, sql } from "kysely";
import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import { badField } from "../platform/kernel/errors.ts";
import type { StorageKind } from "../platform/storage/storage.ts";
import {
  lowestIdAt,
  recordOfRow,
  timeOfId,
  type GenerationRecord,
  type GenerationTables,
  type RecordSource,
} from "./generation-record.ts";
import type { UsageTables } from "./usage/usage-rollup.ts";

/**
 * The conditions of a search. A list is met by any of its values; an absent member by every record.
 */
export interface GenerationFilter {
  models?: readonly string[] | undefined;
  requestedModels?: readonly string[] | undefined;
  providers?: readonly string[] | undefined;
  keyIds?: readonly string[] | undefined;
  teamIds?: readonly string[] | undefined;
  surfaces?: readonly string[] | undefined;
  statuses?: readonly GenerationRecord["status"][] | undefined;
  /** Codes of failed requests. */
  errors?: readonly string[] | undefined;
  appTitle?: string | undefined;
  sessionId?: string | undefined;
  presetIds?: readonly string[] | undefined;
  /** Ids of batches in either form, `batch_` or `msgbatch_`. */
  batchIds?: readonly string[] | undefined;
  streamed?: boolean | undefined;
  /** Whether the workspace's own provider key paid. */
  byok?: boolean | undefined;
  costNanoMin?: bigint | undefined;
  latencyMsMin?: number | undefined;
}

/** Records of a workspace within a range of wall times in milliseconds. The end is exclusive. */
export interface GenerationRange {
  workspaceId: string;
  fromMs: number;
  toMs: number;
  filter: GenerationFilter;
}

/** The query of a page of records, newest first. */
export interface GenerationPageQuery extends GenerationRange {
  /** The id of a record, which need not exist; only older records are returned. */
  after?: string | undefined;
  limit: number;
}

/**
 * A page of records. `next` continues it. A page with `next` may have fewer than `limit` records
 * where few of many meet the filter.
 */
export interface GenerationPage {
  records: GenerationRecord[];
  next: string | undefined;
}

/** The most records that one query may read, in steps that let other reads pass in between. */
export const rowsReadMax = 60_000;
const stepRows = 15_000;
/**
 * The most by which a record's day may differ from its id's, because the request took long or the
 * clock was set.
 */
const daySlackMs = hourMs;

/** Ids from `low` on and before `end`. */
interface IdWindow {
  low: string;
  end: string;
}

/** Finds generation records by a filter, reading at most `rowsReadMax` of them at a time. */
export class GenerationSearch {
  constructor(private readonly source: RecordSource<GenerationTables & UsageTables>) {}

  /** Returns a page of the records that meet the filter, newest first. */
  async page(query: GenerationPageQuery): Promise<GenerationPage> {
    // Free requests do not wait for their rows, and their caller may ask before they are written.
    if (this.source.commits.pendingCount > 0) await this.source.commits.flush();
    const low = lowestIdAt(query.fromMs);
    const end = olderOf(query.after, lowestIdAt(query.toMs));
    if (this.isUnconditional(query.filter))
      return pageOf(await this.read(query, { low, end, limit: query.limit + 1 }), query.limit);
    return this.scan(query, { low, end });
  }

  /**
   * Returns the query of one step of a page: a range of the primary key, or of the index of
   * requests that did not complete.
   */
  stepSql(
    range: GenerationRange,
    { limit, ...window }: IdWindow & { limit: number },
  ): RawBuilder<GenerationTables["generations"]> {
    const found = sql`${this.windowSql(range, window)} and ${conditionOf(range.filter, this.source.kind)}
      order by id desc limit ${sql.lit(limit)}`;
    // The index contains the statuses, so that only the records of the page itself are read.
    return isUnfinishedAlone(range.filter)
      ? sql`select * from generations where workspace_id = ${range.workspaceId} and id in (select id ${found}) order by id desc`
      : sql`select * ${found}`;
  }

  /**
   * Returns the query for the number of records in a window's newest step, and the id of its
   * oldest. Older records wait for the next step.
   */
  stepSizeSql(
    range: GenerationRange,
    { rows, ...window }: IdWindow & { rows: number },
  ): RawBuilder<{ rows: number | string; low: string | null }> {
    return sql`select count(*) as rows, min(id) as low
      from (select id ${this.windowSql(range, window)} order by id desc limit ${sql.lit(rows)}) as step`;
  }

  private windowSql(
    { workspaceId, filter }: GenerationRange,
    { low, end }: IdWindow,
  ): RawBuilder<unknown> {
    // SQLite would otherwise prefer the primary key over the index with its few rows.
    const table = isUnfinished(filter)
      ? sql`generations ${sql.raw(this.source.kind === "sqlite" ? "indexed by generations_unfinished" : "")} where ${unfinished} and`
      : sql`generations where`;
    return sql`from ${table} workspace_id = ${workspaceId} and id >= ${low} and id < ${end}`;
  }

  private isUnconditional(filter: GenerationFilter): boolean {
    return Object.values(filter).every((value) => value === undefined);
  }

  private async read(
    range: GenerationRange,
    window: IdWindow & { limit: number },
  ): Promise<GenerationRecord[]> {
    return (await this.stepSql(range, window).execute(this.source.database)).rows.map(recordOfRow);
  }

  /**
   * Reads records step by step until the page is full, the range ends, or the limit of reads is
   * reached.
   */
  private async scan(query: GenerationPageQuery, whole: IdWindow): Promise<GenerationPage> {
    const records: GenerationRecord[] = [];
    let windows: readonly IdWindow[] = [whole];
    let rowsLeft = rowsReadMax;
    for (let first = true; ; first = false) {
      const [window, ...later] = windows;
      if (window === undefined) return { records, next: undefined };
      if (rowsLeft <= 0) return { records, next: window.end };
      const {
        rows: [size],
      } = await this.stepSizeSql(query, { ...window, rows: stepRows }).execute(
        this.source.database,
      );
      const rows = Number(size?.rows ?? 0);
      const low = rows < stepRows ? window.low : (size?.low ?? window.low);
      rowsLeft -= rows;
      if (rows > 0)
        records.push(
          ...(await this.read(query, {
            low,
            end: window.end,
            limit: query.limit + 1 - records.length,
          })),
        );
      if (records.length > query.limit) return pageOf(records, query.limit);
      windows = low > window.low ? [{ low: window.low, end: low }, ...later] : later;
      // Small workspaces end here. For large ones, the counters say which days have any matching
      // requests.
      if (first && windows.length > 0)
        windows = await this.daysOf(query, { low: whole.low, end: low });
    }
  }

  /**
   * Returns the parts of a window in which requests with the filter's keys, models and providers
   * were counted, newest day first.
   */
  private async daysOf(
    { workspaceId, filter, fromMs }: GenerationRange,
    window: IdWindow,
  ): Promise<readonly IdWindow[]> {
    const { keyIds, models, providers } = filter;
    if (keyIds === undefined && models === undefined && providers === undefined) return [window];
    const endMs = timeOfId(window.end);
    let days = this.source.database
      .selectFrom("usage_days")
      .select("day")
      .distinct()
      .where("workspace_id", "=", workspaceId)
      .where("day", ">=", Math.floor((fromMs - daySlackMs) / dayMs))
      .where("day", "<=", Math.floor((endMs + daySlackMs) / dayMs));
    if (keyIds !== undefined) days = days.where("key_id", "in", [...keyIds, ""]);
    if (models !== undefined) days = days.where("model", "in", [...models]);
    if (providers !== undefined) days = days.where("provider", "in", [...providers]);
    const windows: IdWindow[] = [];
    let { end } = window;
    for (const { day } of await days.orderBy("day", "desc").execute()) {
      const low = newerOf(window.low, lowestIdAt(day * dayMs - daySlackMs));
      end = olderOf(end, lowestIdAt((day + 1) * dayMs + daySlackMs));
      if (low < end) windows.push({ low, end });
      end = olderOf(end, low);
    }
    return windows;
  }
}

/** Returns the older of two ids. */
export const olderOf = (one: string | undefined, other: string): string =>
  one !== undefined && one < other ? one : other;
/** Returns the newer of two ids. */
export const newerOf = (one: string, other: string): string => (one > other ? one : other);

/**
 * Returns the page that a list of records begins with. One record beyond the limit means that there
 * is a next page.
 */
export function pageOf(records: GenerationRecord[], limit: number): GenerationPage {
  const page = records.slice(0, limit);
  return { records: page, next: records.length > limit ? page.at(-1)?.id : undefined };
}

/** The condition of the index `generations_unfinished`, word for word. */
const unfinished = sql<boolean>`status <> 'completed'`;

/** Returns whether a filter can be met only by records that did not complete. */
export const isUnfinished = ({ statuses, errors }: GenerationFilter): boolean =>
  errors !== undefined || (statuses !== undefined && !statuses.includes("completed"));

/** Returns whether a filter has such statuses as its only condition. */
const isUnfinishedAlone = ({ statuses, ...others }: GenerationFilter): boolean =>
  isUnfinished({ statuses }) && Object.values(others).every((value) => value === undefined);

/** Returns whether the usage counters can answer for a filter. */
export const isCountable = ({
  models: _,
  providers: __,
  keyIds: ___,
  ...others
}: GenerationFilter): boolean => Object.values(others).every((value) => value === undefined);

/** Returns a member of a record's detail as text; null where it has none. */
export function detailText(kind: StorageKind, path: string): RawBuilder<unknown> {
  if (kind === "sqlite") return sql`json_extract(detail, ${sql.lit(`$.${path}`)})`;
  // Postgres cannot represent U+0000, which callers may put into stored members of their requests.
  const members = sql.lit(`{${path.replaceAll(".", ",")}}`);
  return sql`case when position('\\u0000' in detail) = 0 then detail::json #>> ${members} end`;
}

const anyOf = (left: RawBuilder<unknown>, values: readonly string[]): RawBuilder<unknown> =>
  values.length === 0 ? sql`1 = 0` : sql`${left} in (${sql.join(values)})`;

/**
 * Tests whether a member of a record's detail is one of these texts. It searches the written text
 * for the member first, since most records lack it and parsing each one's JSON takes several times
 * as long.
 */
function isAmong(
  kind: StorageKind,
  { path, values }: { path: string; values: readonly string[] },
): RawBuilder<unknown> {
  if (values.length === 0) return sql`1 = 0`;
  const name = JSON.stringify(path.slice(path.lastIndexOf(".") + 1));
  const places = values.map((value) => {
    const written = `${name}:${JSON.stringify(value)}`;
    return kind === "sqlite"
      ? sql`instr(detail, ${written}) > 0`
      : sql`position(cast(${written} as text) in detail) > 0`;
  });
  return sql`(${sql.join(places, sql` or `)}) and ${anyOf(detailText(kind, path), values)}`;
}

/** Returns a filter's database condition. */
export function conditionOf(filter: GenerationFilter, kind: StorageKind): RawBuilder<boolean> {
  const conditions: RawBuilder<unknown>[] = [];
  const columns = {
    model: filter.models,
    requested_model: filter.requestedModels,
    provider: filter.providers,
    key_id: filter.keyIds,
    surface: filter.surfaces,
    status: filter.statuses,
  };
  for (const [name, values] of Object.entries(columns))
    if (values !== undefined) conditions.push(anyOf(sql.ref(name), values));
  if (filter.streamed !== undefined) conditions.push(sql`streamed = ${filter.streamed ? 1 : 0}`);
  if (filter.costNanoMin !== undefined)
    conditions.push(sql`cost_nano >= ${Number(filter.costNanoMin)}`);
  if (filter.latencyMsMin !== undefined) conditions.push(sql`latency_ms >= ${filter.latencyMsMin}`);
  if (filter.errors !== undefined)
    conditions.push(isAmong(kind, { path: "error.code", values: filter.errors }));
  if (filter.appTitle !== undefined)
    conditions.push(isAmong(kind, { path: "appTitle", values: [filter.appTitle] }));
  if (filter.sessionId !== undefined)
    conditions.push(isAmong(kind, { path: "sessionId", values: [filter.sessionId] }));
  if (filter.teamIds !== undefined)
    conditions.push(isAmong(kind, { path: "team", values: filter.teamIds }));
  if (filter.presetIds !== undefined)
    conditions.push(isAmong(kind, { path: "presetId", values: filter.presetIds }));
  if (filter.batchIds !== undefined)
    conditions.push(isAmong(kind, { path: "batchId", values: filter.batchIds }));
  if (filter.byok !== undefined) {
    const own = sql`coalesce(${detailText(kind, "credentialSource")}, '') = 'own_byok'`;
    conditions.push(filter.byok ? own : sql`not (${own})`);
  }
  return conditions.length === 0
    ? sql<boolean>`1 = 1`
    : sql<boolean>`${sql.join(conditions, sql` and `)}`;
}

/** The most reads that leave out records before a page. */
const skippingReadsMax = 20;
const skippedRows = 1_000;

/**
 * Returns the page behind the number of records that an offset leaves out; with `after`, the offset
 * does not count. Throws `bad_request` where that would read too many records.
 */
export async function pageAtOffset(
  { after, limit, offset }: { after: string | undefined; limit: number; offset: number },
  read: (page: { after: string | undefined; limit: number }) => Promise<GenerationPage>,
): Promise<GenerationPage> {
  if (after !== undefined) return read({ after, limit });
  let place: string | undefined;
  let left = offset;
  for (let reads = 0; left > 0; reads += 1) {
    if (reads === skippingReadsMax)
      throw badField("offset", "reaches too far with these filters. Use cursor instead.");
    const { records, next } = await read({ after: place, limit: Math.min(left, skippedRows) });
    if (next === undefined) return { records: [], next };
    left -= records.length;
    place = next;
  }
  return read({ after: place, limit });
}
