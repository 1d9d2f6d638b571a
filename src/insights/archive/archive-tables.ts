import type { GenerationTables } from "../generation-record.ts";
import type { ArchiveClient } from "./archive-client.ts";

/** The table of records. */
export const archiveTable = "switchyard_generations";

/**
 * Creates the table of records, ordered as it is queried: by workspace, then by id, which begins
 * with the time. Duplicate records are merged in the background and by every query (`final`);
 * repeated inserts are recognised earlier by their tokens. The server extracts the columns that
 * queries filter by from the detail once. Past months are merged to one part, which queries need
 * not merge.
 */
const createTable = `create table if not exists ${archiveTable} (
  id UInt128 codec(ZSTD(1)),
  created_at_ms Int64 codec(DoubleDelta, LZ4),
  workspace_id LowCardinality(String),
  key_id LowCardinality(String),
  surface LowCardinality(String),
  requested_model LowCardinality(String),
  model LowCardinality(String),
  provider LowCardinality(String),
  upstream_model LowCardinality(String),
  upstream_id Nullable(String) codec(ZSTD(1)),
  status LowCardinality(String),
  finish_reason LowCardinality(Nullable(String)),
  streamed UInt8,
  prompt_tokens Int64 codec(T64, LZ4),
  completion_tokens Int64 codec(T64, LZ4),
  cost_nano Int64 codec(T64, LZ4),
  latency_ms Int64 codec(T64, LZ4),
  first_token_ms Nullable(Int64) codec(ZSTD(1)),
  detail String codec(ZSTD(3)),
  cached_tokens Int64 materialized JSONExtractInt(detail, 'usage', 'cacheReadTokens') codec(T64, LZ4),
  reasoning_tokens Int64 materialized JSONExtractInt(detail, 'usage', 'reasoningTokens') codec(T64, LZ4),
  error_code LowCardinality(String) materialized JSONExtractString(detail, 'error', 'code'),
  error_status UInt16 materialized JSONExtractUInt(detail, 'error', 'status'),
  app_title LowCardinality(String) materialized JSONExtractString(detail, 'appTitle'),
  session_id String materialized JSONExtractString(detail, 'sessionId') codec(ZSTD(1)),
  credential_source LowCardinality(String) materialized JSONExtractString(detail, 'credentialSource'),
  index created created_at_ms type minmax granularity 1
)
engine = ReplacingMergeTree
partition by toYYYYMM(fromUnixTimestamp64Milli(created_at_ms, 'UTC'))
order by (workspace_id, id)
settings non_replicated_deduplication_window = 1000,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1`;

const ttlOf = (table: string, days: number): string =>
  `alter table ${table} modify ttl toDateTime(fromUnixTimestamp64Milli(created_at_ms, 'UTC')) + interval ${days} day`;

/** Creates the table of records where it is missing, and sets its retention. */
export const prepareArchive = (
  client: ArchiveClient,
  keepDays: number | undefined,
): Promise<void> => prepareTable(client, { table: archiveTable, create: createTable, keepDays });

/** Creates a table where it is missing, and sets its retention, counted from `created_at_ms`. */
export async function prepareTable(
  client: ArchiveClient,
  { table, create, keepDays }: { table: string; create: string; keepDays: number | undefined },
): Promise<void> {
  await client.command(create);
  const [made] = await client.query<{ create_table_query: string }>(
    "select create_table_query from system.tables where database = currentDatabase() and name = {table:String}",
    { table },
  );
  const kept = /\bTTL\b[^]*?toIntervalDay\((\d+)\)/.exec(made?.create_table_query ?? "")?.[1];
  if (keepDays !== undefined && kept !== String(keepDays))
    await client.command(ttlOf(table, keepDays));
  else if (keepDays === undefined && kept !== undefined)
    await client.command(`alter table ${table} remove ttl`);
}

const prefix = "gen_";

/** Converts an id to the archive's form: a 128-bit number with the same order. */
export const archivedId = (id: string): string => BigInt(`0x${id.slice(prefix.length)}`).toString();

/** The SQL of a record's id. */
const idSql = `concat('${prefix}', leftPad(lower(hex(id)), 32, '0'))`;

/** The SQL of a record's columns, in the form of the row store. */
export const recordSql = `${idSql} as id, * except (id)`;

/** Returns a record in the form that is sent to the archive. */
export const archivedRow = (row: GenerationTables["generations"]): object => ({
  ...row,
  id: archivedId(row.id),
  cost_nano: String(row.cost_nano),
});

/** Returns a record of the archive in the form of the row store. */
export const storedRow = (
  row: Record<keyof GenerationTables["generations"], string | number | null>,
): GenerationTables["generations"] =>
  ({
    ...row,
    created_at_ms: Number(row.created_at_ms),
    prompt_tokens: Number(row.prompt_tokens),
    completion_tokens: Number(row.completion_tokens),
    cost_nano: BigInt(row.cost_nano ?? 0),
    latency_ms: Number(row.latency_ms),
    first_token_ms: row.first_token_ms === null ? null : Number(row.first_token_ms),
  }) as GenerationTables["generations"];
