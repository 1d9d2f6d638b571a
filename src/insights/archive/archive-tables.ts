import type { GenerationTables } from "../generation-record.ts";
import type { ArchiveClient } from "./archive-client.ts";

/** The table of the records. */
export const archiveTable = "switchyard_generations";

/**
 * A row for each record, in the order in which it is asked for: by workspace, then by time, with
 * which ids begin. Records that came twice become one, in the background and in every question
 * (`final`). Repeated inserts are known by their tokens before that. What questions filter by is
 * taken out of the detail once, by the server. Months that are over are merged to one part, which
 * questions need not merge.
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

/** Makes the table of records where it is not there yet, and says how long it keeps them. */
export const prepareArchive = (
  client: ArchiveClient,
  keepDays: number | undefined,
): Promise<void> => prepareTable(client, { table: archiveTable, create: createTable, keepDays });

/** Makes a table that is not there yet, and says how long it keeps rows by `created_at_ms`. */
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

/** An id as the archive keeps it: a number of 128 bits, whose order is that of the ids. */
export const archivedId = (id: string): string => BigInt(`0x${id.slice(prefix.length)}`).toString();

/** The id of a record, in SQL. */
const idSql = `concat('${prefix}', leftPad(lower(hex(id)), 32, '0'))`;

/** The columns of a record, in SQL, as the row store has them. */
export const recordSql = `${idSql} as id, * except (id)`;

/** A record as it is sent to the archive. */
export const archivedRow = (row: GenerationTables["generations"]): object => ({
  ...row,
  id: archivedId(row.id),
  cost_nano: String(row.cost_nano),
});

/** A record as the row store would read it. */
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
