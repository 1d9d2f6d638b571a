import { Kysely, PostgresDialect, sql } from "kysely";
import { Pool, type PoolConfig } from "pg";
import { z } from "zod";
import { dayMs } from "../../lib/clock.ts";
import { GroupCommitQueue } from "../group-commit-queue.ts";
import { migrate } from "../migrate.ts";
import { createUnitPacker } from "../packed-unit.ts";
import type { OpenedStorageOptions, Storage } from "../storage.ts";
import { succeedsWithin } from "../../lib/within-time.ts";
import { CommitSession } from "./commit-session.ts";
import { commitBatchesTable, type ColumnTypes } from "./commit-sql.ts";
import { momentLockKey } from "./gateway-lock.ts";
import { PostgresBatchWriter } from "./postgres-batch-writer.ts";
import { valueTypes } from "./value-types.ts";

const maxQueryMs = 30_000;
const maxIdleInTransactionMs = 5_000;
const healthTimeoutMs = 2_000;

/** Opens a Postgres database: a pool for queries, and one session apart for commits. */
export async function openPostgres<Schema>(
  options: OpenedStorageOptions,
): Promise<Storage<Schema>> {
  const session = await CommitSession.open({
    url: options.url,
    lockTimeoutMs: options.lockTimeoutMs,
    waitMs: options.waitMs,
    severalGateways: options.severalGateways,
    statementTimeoutMs: options.commitTimeoutMs,
    clock: options.clock,
    logger: options.logger,
  });
  try {
    await migratePostgres(options, session);
    // Marks of an earlier run: whoever waited for them is gone, or has been waiting for a day.
    const old = options.severalGateways ? options.clock.nowMs() - dayMs : Number.MAX_SAFE_INTEGER;
    await session.query({
      text: "delete from commit_batches where committed_at_ms < $1",
      values: [old],
    });
    return postgresStorage<Schema>(
      { session, typeOf: await columnTypes(session, options) },
      options,
    );
  } catch (error) {
    await session.close();
    throw error;
  }
}

function newPool({ url, logger }: OpenedStorageOptions, limits: PoolConfig): Pool {
  const pool = new Pool({
    connectionString: url,
    application_name: "switchyard",
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    types: valueTypes,
    ...limits,
  });
  pool.on("error", (error) => logger.warn({ err: error }, "an idle database connection was lost"));
  return pool;
}

/** On a connection without time limits: an index over millions of rows takes as long as it takes. */
async function migratePostgres(
  options: OpenedStorageOptions,
  session: CommitSession,
): Promise<void> {
  const database = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: newPool(options, { max: 2 }) }),
  });
  try {
    await aloneOn(database, async () => {
      await migrate({ ...options, database, kind: "postgres" });
      await session.query({ text: commitBatchesTable });
    });
  } finally {
    await database.destroy();
  }
}

/** Does work while one connection of the pool holds a lock that no other gateway has then. */
function aloneOn<Schema, Result>(
  database: Kysely<Schema>,
  work: () => Promise<Result>,
): Promise<Result> {
  return database.connection().execute(async (holder) => {
    await sql`select pg_advisory_lock(${sql.raw(momentLockKey)})`.execute(holder);
    try {
      return await work();
    } finally {
      await sql`select pg_advisory_unlock(${sql.raw(momentLockKey)})`.execute(holder);
    }
  });
}

const columnsSchema = z.array(z.object({ column: z.string(), type: z.string() }));

async function columnTypes(
  session: CommitSession,
  { commitStatements }: OpenedStorageOptions,
): Promise<ColumnTypes> {
  const tables = new Set(
    [...commitStatements.inserts, ...commitStatements.adds].map(({ table }) => table),
  );
  const types = new Map<string, string>();
  for (const table of tables) {
    const columns = await session.query({
      text: `select attname as column, format_type(atttypid, atttypmod) as type from pg_attribute
             where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
      values: [`"${table}"`],
    });
    for (const { column, type } of columnsSchema.parse(columns))
      types.set(`${table}.${column}`, type);
  }
  return (table, column) => {
    const type = types.get(`${table}.${column}`);
    if (type !== undefined) return type;
    throw new TypeError(
      `a commit statement names ${table}.${column}, which the database does not have`,
    );
  };
}

interface PostgresParts {
  session: CommitSession;
  typeOf: ColumnTypes;
}

function postgresStorage<Schema>(
  { session, typeOf }: PostgresParts,
  options: OpenedStorageOptions,
): Storage<Schema> {
  const { clock, commitStatements, commitTimeoutMs } = options;
  const pool = newPool(options, {
    max: 10,
    statement_timeout: maxQueryMs,
    idle_in_transaction_session_timeout: maxIdleInTransactionMs,
  });
  const database = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  const commits = new GroupCommitQueue({
    pack: createUnitPacker(commitStatements),
    writer: new PostgresBatchWriter({
      session,
      statements: commitStatements,
      typeOf,
      clock,
      retryForMs: commitTimeoutMs,
    }),
    clock,
    maxWaitMs: commitTimeoutMs,
    logger: options.logger,
  });
  return {
    kind: "postgres",
    database,
    commits,
    alone: (work) => aloneOn(database, work),
    join: () => session.join(),
    isHealthy: async () =>
      session.isOpen &&
      (await succeedsWithin(healthTimeoutMs, pool.query("select 1"))) &&
      commits.takesWrites(),
    close: async () => {
      // A database that is down may leave a commit undecided for ever; twice its patience is enough.
      await succeedsWithin(2 * commitTimeoutMs, commits.close());
      await session.close();
      await database.destroy();
    },
  };
}
