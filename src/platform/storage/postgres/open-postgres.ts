import { Kysely, PostgresDialect, sql } from "kysely";
import { z } from "zod";
import { dayMs } from "../../kernel/clock.ts";
import { GroupCommitQueue } from "../group-commit-queue.ts";
import { migrate } from "../migrate.ts";
import type { OpenedStorageOptions, Storage } from "../storage.ts";
import { succeedsWithin } from "../../kernel/time/within-time.ts";
import { CommitSession } from "./commit-session.ts";
import { type AddStatement, type CommitStatements, createUnitPacker } from "../commit-queue.ts";
import { formatText, growthFormatOf, type GrowthFormat } from "../growths.ts";
import { commitBatchesTable, type ColumnTypes, growthTables } from "./commit-sql.ts";
import { momentLockKey } from "./gateway-lock.ts";
import { newPool } from "./new-pool.ts";
import { PostgresBatchWriter } from "./postgres-batch-writer.ts";
import { reportingUnavailable } from "./postgres-error.ts";
import { SilenceWatch } from "./silence-watch.ts";
import { SumFold } from "./sum-fold.ts";
import { sumTablesOf } from "../sum-reads.ts";
import { PostgresSumsDialect } from "./postgres-sums-dialect.ts";

const maxQueryMs = 30_000;
const maxIdleInTransactionMs = 5_000;
const healthTimeoutMs = 2_000;

/** Opens a Postgres database: a pool for queries, and a separate session for commits. */
export async function openPostgres<Schema>(
  options: OpenedStorageOptions,
): Promise<Storage<Schema>> {
  const watch = openWatch(options);
  const session = await CommitSession.open({
    watch,
    url: options.url,
    lockTimeoutMs: options.lockTimeoutMs,
    waitMs: options.waitMs,
    severalGateways: options.severalGateways,
    statementTimeoutMs: options.commitTimeoutMs,
    clock: options.clock,
    logger: options.logger,
  }).catch(async (error: unknown) => {
    await watch.stop();
    throw error;
  });
  const format = growthFormatOf(options.commitStatements.adds);
  let fold: SumFold | undefined;
  try {
    await migratePostgres(options, { session, format });
    // Marks of an earlier run: the gateway that waited for them has ended, or has waited for a day.
    const old = options.severalGateways ? options.clock.nowMs() - dayMs : Number.MAX_SAFE_INTEGER;
    await session.query({
      text: "delete from commit_batches where committed_at_ms < $1",
      values: [old],
    });
    const typeOf = await columnTypes(session, options.commitStatements);
    fold = openFold(options, { session, format, watch });
    await fold.run();
    fold.start();
    return postgresStorage<Schema>({ session, typeOf, format, fold, watch }, options);
  } catch (error) {
    await fold?.stop();
    await session.close();
    await watch.stop();
    throw error;
  }
}

/**
 * Runs migrations on a connection without time limits, since an index over millions of rows may
 * take any time.
 */
async function migratePostgres(
  options: OpenedStorageOptions,
  { session, format }: { session: CommitSession; format: GrowthFormat },
): Promise<void> {
  const database = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: newPool(options, { max: 2 }) }),
  });
  try {
    await aloneOn(database, async (holder) => {
      for (const text of [commitBatchesTable, ...growthTables]) await session.query({ text });
      await migrate({ ...options, database, examined: holder, kind: "postgres" });
      await session.query({
        text: "insert into commit_formats (id, sums) values ($1, $2) on conflict do nothing",
        values: [format.id, formatText(format)],
      });
    });
  } finally {
    await database.destroy();
  }
}

/**
 * Runs work while one connection of the pool, which it gets, holds a lock that excludes every other
 * gateway.
 */
function aloneOn<Schema, Result>(
  database: Kysely<Schema>,
  work: (holder: Kysely<Schema>) => Promise<Result>,
): Promise<Result> {
  return database.connection().execute(async (holder) => {
    await sql`select pg_advisory_lock(${sql.raw(momentLockKey)})`.execute(holder);
    try {
      return await work(holder);
    } finally {
      await sql`select pg_advisory_unlock(${sql.raw(momentLockKey)})`.execute(holder);
    }
  });
}

const columnsSchema = z.array(z.object({ column: z.string(), type: z.string() }));

async function columnTypes(
  session: CommitSession,
  { inserts, adds }: CommitStatements,
): Promise<ColumnTypes> {
  const tables = new Set([...inserts, ...adds].map(({ table }) => table));
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

/** Opens the watch for silence, which lasts as long as a commit may wait. */
function openWatch(options: OpenedStorageOptions): SilenceWatch {
  const { commitTimeoutMs: silentAfterMs, clock, logger } = options;
  const probes = newPool(options, {
    max: 1,
    query_timeout: silentAfterMs,
    connectionTimeoutMillis: silentAfterMs,
  });
  return new SilenceWatch({ probes, silentAfterMs, clock, logger });
}

function openFold(
  options: OpenedStorageOptions,
  { session, format, watch }: Pick<PostgresParts, "session" | "format" | "watch">,
): SumFold {
  const pool = newPool(options, {
    max: 2,
    statementMs: maxQueryMs,
    // A gateway that is suspended during a fold would keep the lock from all others.
    idleInTransactionMs: maxIdleInTransactionMs,
    query_timeout: maxQueryMs,
  });
  const typesOf = (adds: readonly AddStatement[]) => columnTypes(session, { inserts: [], adds });
  return new SumFold({ ...options, pool: watch.pool(pool), format, typesOf });
}

interface PostgresParts {
  session: CommitSession;
  typeOf: ColumnTypes;
  format: GrowthFormat;
  fold: SumFold;
  watch: SilenceWatch;
}

function postgresStorage<Schema>(
  { session, typeOf, format, fold, watch }: PostgresParts,
  options: OpenedStorageOptions,
): Storage<Schema> {
  const { clock, commitStatements, commitTimeoutMs, severalGateways } = options;
  const pool = watch.pool(
    newPool(options, {
      max: options.poolSize,
      statementMs: maxQueryMs,
      idleInTransactionMs: maxIdleInTransactionMs,
    }),
  );
  const database = new Kysely<Schema>({
    dialect: new PostgresSumsDialect(
      { pool: reportingUnavailable(fold.foldingPool(pool)) },
      sumTablesOf(commitStatements.adds),
    ),
  });
  const commits = new GroupCommitQueue({
    pack: createUnitPacker(commitStatements),
    writer: new PostgresBatchWriter({
      session,
      statements: commitStatements,
      format,
      typeOf,
      isGuarded: ({ guarded }) => severalGateways && guarded === true,
      severalGateways,
      onCommitted: () => (fold.isBehind = true),
      clock,
      retryForMs: commitTimeoutMs,
    }),
    clock,
    maxWaitMs: commitTimeoutMs,
    logger: options.logger,
  });
  watch.start((cause) => commits.suspend(cause));
  return {
    kind: "postgres",
    database,
    commits,
    alone: (work) => aloneOn(database, work),
    join: () => session.join(),
    isHealthy: async () =>
      session.isOpen &&
      (await succeedsWithin(healthTimeoutMs, sql`select 1`.execute(database))) &&
      commits.takesWrites(),
    close: async () => {
      // A database that is down may leave a commit undecided forever; twice the timeout is enough.
      await succeedsWithin(2 * commitTimeoutMs, commits.close());
      await fold.stop();
      await session.close();
      await watch.stop();
      await database.destroy();
    },
  };
}
