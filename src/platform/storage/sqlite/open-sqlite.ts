import { mkdirSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Kysely, sql } from "kysely";
import { GroupCommitQueue } from "../group-commit-queue.ts";
import { migrate } from "../migrate.ts";
import { createUnitPacker } from "../commit-queue.ts";
import { StorageInUseError } from "../storage-error.ts";
import type { OpenedStorageOptions, Storage } from "../storage.ts";
import { sumTablesOf } from "../sum-reads.ts";
import { succeedsWithin } from "../../kernel/time/within-time.ts";
import { DatabaseWorker } from "./database-worker.ts";
import { SqliteBatchWriter, newWriterTurn, type WriterTurn } from "./sqlite-batch-writer.ts";
import { WorkerDialect } from "./worker-dialect.ts";
import { databaseInUseCode, type OpenRequest } from "./worker-protocol.ts";
import { takeProcessLock } from "./sqlite-connection.ts";

interface Threads {
  writer: DatabaseWorker;
  reader: DatabaseWorker;
  turn: WriterTurn;
}

/** Opens the embedded database on its two threads. */
export async function openSqlite<Schema>(options: OpenedStorageOptions): Promise<Storage<Schema>> {
  const threads = {
    writer: new DatabaseWorker(),
    reader: new DatabaseWorker(),
    turn: newWriterTurn(),
  };
  try {
    await openThreads(threads, options);
    await migrateSqlite(threads, options);
    await threads.writer.request({ kind: "prepare", statements: options.commitStatements });
    return sqliteStorage<Schema>(threads, options);
  } catch (error) {
    await closeThreads(threads);
    throw error;
  }
}

/**
 * Opens the threads. The writer comes first: it creates the file, and holds the lock that a second
 * process meets.
 */
async function openThreads(
  { writer, reader }: Threads,
  options: OpenedStorageOptions,
): Promise<void> {
  const request: Omit<OpenRequest, "role"> = {
    path: databasePath(options.url),
    synchronous: options.durability === "power" ? "FULL" : "NORMAL",
    lockTimeoutMs: options.lockTimeoutMs,
  };
  try {
    await writer.request({ kind: "open", options: { ...request, role: "writer" } });
  } catch (error) {
    throw asInUse(error, request.path);
  }
  await reader.request({ kind: "open", options: { ...request, role: "reader" } });
}

/** Says which database is in use where that is the error; returns any other error as it is. */
const asInUse = (error: unknown, path: string): unknown =>
  error instanceof Error && "code" in error && error.code === databaseInUseCode
    ? new StorageInUseError(
        `another gateway process uses ${path}: stop it first, or give this one its own data directory`,
      )
    : error;

/**
 * Keeps gateways away from a database, also a damaged one, until the returned function is called.
 * Throws `StorageInUseError` where a gateway uses it.
 */
export function lockSqlite(
  url: string,
  { lockTimeoutMs }: Pick<OpenRequest, "lockTimeoutMs">,
): () => void {
  const path = databasePath(url);
  try {
    const lock = takeProcessLock(path, lockTimeoutMs);
    return () => lock.close();
  } catch (error) {
    throw asInUse(error, path);
  }
}

/**
 * Returns the absolute path with symbolic links resolved, so that one file has one lock under all
 * its names.
 */
function databasePath(url: string): string {
  const path = resolve(url.slice("sqlite:".length));
  mkdirSync(dirname(path), { recursive: true });
  try {
    return realpathSync(path);
  } catch {
    return join(realpathSync(dirname(path)), basename(path));
  }
}

async function migrateSqlite(
  threads: Threads,
  { migrations, mayMigrate }: OpenedStorageOptions,
): Promise<void> {
  const database = new Kysely<unknown>({
    dialect: new WorkerDialect({ ...threads, sums: new Set() }),
  });
  await migrate({ database, kind: "sqlite", migrations, mayMigrate });
}

function sqliteStorage<Schema>(threads: Threads, options: OpenedStorageOptions): Storage<Schema> {
  // Commits wait behind transactions, so these may last only as long as a commit may wait.
  const maxTransactionMs = options.commitTimeoutMs;
  const database = new Kysely<Schema>({
    dialect: new WorkerDialect({
      ...threads,
      maxTransactionMs,
      sums: sumTablesOf(options.commitStatements.adds),
    }),
  });
  const commits = new GroupCommitQueue({
    pack: createUnitPacker(options.commitStatements),
    writer: new SqliteBatchWriter(threads),
    clock: options.clock,
    maxWaitMs: options.commitTimeoutMs,
    logger: options.logger,
  });
  const shrinking = setInterval(() => {
    shrinkFile(database).catch((error: unknown) =>
      options.logger.warn({ err: error }, "the database file could not be made smaller yet"),
    );
  }, shrinkEveryMs);
  shrinking.unref();
  return {
    kind: "sqlite",
    database,
    commits,
    // The file's lock keeps every other gateway out.
    alone: (work) => work(),
    join: () => Promise.resolve(true),
    isHealthy: async () =>
      (await succeedsWithin(2_000, canRead(threads.reader))) && commits.takesWrites(),
    close: async () => {
      clearInterval(shrinking);
      await commits.close();
      await database.destroy();
      await closeThreads(threads);
    },
  };
}

const shrinkEveryMs = 60_000;

/**
 * Pages of 4 KB: those that stay free for the next rows, and those that one step returns within
 * some milliseconds.
 */
const shrinkDefaults = { keptPages: 4_096, stepPages: 256 };

/**
 * Returns the pages of deleted rows to the file system, in steps between which commits continue. A
 * file that was created without `auto_vacuum` keeps them for later rows.
 */
export async function shrinkFile<Schema>(
  database: Kysely<Schema>,
  { keptPages, stepPages } = shrinkDefaults,
): Promise<void> {
  const freePages = async (): Promise<number> => {
    const { rows } = await sql<{ free: number | bigint }>`
      select case auto_vacuum when 2 then freelist_count else 0 end as free
      from pragma_freelist_count(), pragma_auto_vacuum()`.execute(database);
    return Number(rows[0]?.free ?? 0);
  };
  for (let free = await freePages(); free > keptPages; ) {
    const pages = sql.raw(String(Math.min(stepPages, free - keptPages)));
    await database
      .transaction()
      .execute((transaction) => sql`pragma incremental_vacuum(${pages})`.execute(transaction));
    const left = await freePages();
    if (left >= free) return;
    free = left;
  }
}

const canRead = (worker: DatabaseWorker) =>
  worker.request({ kind: "query", sql: "SELECT 1", parameters: [] });

async function closeThreads({ writer, reader }: Threads): Promise<void> {
  await reader.close();
  await writer.close();
}
