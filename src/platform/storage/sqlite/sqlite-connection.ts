import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { databaseInUseCode, type OpenRequest, type QueryRows } from "./worker-protocol.ts";

/**
 * Opens a connection with exact integers. WAL lets the reader run beside the writer; the journal is
 * truncated to 64 MB after a burst. https://sqlite.org/wal.html
 */
export function openConnection({ path, role, synchronous }: OpenRequest): Database {
  const options = { safeIntegers: true, strict: true };
  const database = new Database(
    path,
    role === "reader" ? { ...options, readonly: true } : { ...options, create: true },
  );
  database.run("PRAGMA busy_timeout = 5000");
  if (role === "writer") {
    // Takes effect only in a new file, before anything is in it.
    database.run("PRAGMA auto_vacuum = INCREMENTAL");
    database.run("PRAGMA journal_mode = WAL");
    database.run(`PRAGMA synchronous = ${synchronous}`);
    database.run("PRAGMA journal_size_limit = 67108864");
    database.run("PRAGMA wal_autocheckpoint = 1000");
  }
  database.run("PRAGMA foreign_keys = ON");
  database.run("PRAGMA temp_store = MEMORY");
  return database;
}

/**
 * Takes the lock of the one gateway on a database: an exclusive transaction on an empty file beside
 * it, whose operating-system lock ends with the process, in any way that it ends.
 */
export function takeProcessLock(path: string, timeoutMs: number): Database {
  const lock = new Database(`${path}.lock`, { create: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${timeoutMs}`);
    lock.run("PRAGMA locking_mode = EXCLUSIVE");
    lock.run("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    const busy =
      error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");
    if (!busy) throw error;
    throw Object.assign(new Error("another process holds the lock"), { code: databaseInUseCode });
  }
}

const maxCachedStatements = 256;

/** Runs compiled queries on one connection, and keeps the most recently used statements. */
export class QueryRunner {
  readonly #database: Database;
  readonly #statements = new Map<string, Statement>();

  constructor(database: Database) {
    this.#database = database;
  }

  run(sql: string, parameters: readonly unknown[]): QueryRows {
    const statement = this.#statement(sql);
    const bindings = parameters as SQLQueryBindings[];
    if (statement.columnNames.length > 0) {
      const rows = statement.values(...bindings) as unknown[][];
      return { columns: statement.columnNames, rows: rows.map(exactNumbers) };
    }
    const { changes, lastInsertRowid } = statement.run(...bindings);
    return { columns: [], rows: [], changes, lastInsertRowid };
  }

  /** Releases the statements, which would keep the connection open. */
  close(): void {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#statements.clear();
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known) {
      this.#statements.delete(sql);
      this.#statements.set(sql, known);
      return known;
    }
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    this.#evictOldest();
    return statement;
  }

  #evictOldest(): void {
    if (this.#statements.size <= maxCachedStatements) return;
    const [oldest] = this.#statements;
    if (!oldest) return;
    this.#statements.delete(oldest[0]);
    oldest[1].finalize();
  }
}

/** Converts integers within 2^53 to numbers; larger ones stay bigint, so that no digit is lost. */
function exactNumbers(row: unknown[]): unknown[] {
  for (let column = 0; column < row.length; column++) {
    const value = row[column];
    if (typeof value !== "bigint") continue;
    const number = Number(value);
    if (Number.isSafeInteger(number)) row[column] = number;
  }
  return row;
}
