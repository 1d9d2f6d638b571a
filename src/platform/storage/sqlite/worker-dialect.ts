import {
  CompiledQuery,
  type DatabaseConnection,
  type DatabaseIntrospector,
  type Dialect,
  type DialectAdapter,
  type Driver,
  type Kysely,
  type QueryCompiler,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
} from "kysely";
import { assert } from "../../kernel/assert.ts";
import { StorageUnavailableError } from "../storage-error.ts";
import { readsSums, type SumTables } from "../sum-reads.ts";
import { SqliteSumsCompiler } from "./sqlite-sums-compiler.ts";
import type { DatabaseWorker } from "./database-worker.ts";
import type { WriterTurn } from "./sqlite-batch-writer.ts";
import type { QueryRows } from "./worker-protocol.ts";

/** Kysely's SQLite dialect over the two database threads. */
export class WorkerDialect implements Dialect {
  readonly #options: WorkerConnectionOptions;

  constructor(options: WorkerConnectionOptions) {
    this.#options = Object.freeze({ ...options });
  }

  createDriver(): Driver {
    return new WorkerDriver(this.#options);
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteSumsCompiler(this.#options.sums);
  }

  createAdapter(): DialectAdapter {
    return new WorkerAdapter();
  }

  createIntrospector(database: Kysely<unknown>): DatabaseIntrospector {
    return new SqliteIntrospector(database);
  }
}

/**
 * Says that the driver serialises connections and that the engine's DDL is transactional, so that
 * migrations are all or nothing.
 */
class WorkerAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }

  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** Hands out connections, each of which is a view of the same two threads. */
class WorkerDriver implements Driver {
  readonly #options: WorkerConnectionOptions;

  constructor(options: WorkerConnectionOptions) {
    this.#options = options;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return new WorkerConnection(this.#options);
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await ours(connection).begin();
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await ours(connection).commit();
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await ours(connection).rollback();
  }

  savepoint(connection: DatabaseConnection, name: string): Promise<void> {
    return runNamed(connection, "SAVEPOINT", name);
  }

  rollbackToSavepoint(connection: DatabaseConnection, name: string): Promise<void> {
    return runNamed(connection, "ROLLBACK TO", name);
  }

  releaseSavepoint(connection: DatabaseConnection, name: string): Promise<void> {
    return runNamed(connection, "RELEASE", name);
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    ours(connection).release();
  }

  /** Does nothing: the threads belong to the caller that opened the storage. */
  async destroy(): Promise<void> {}
}

function ours(connection: DatabaseConnection): WorkerConnection {
  assert(connection instanceof WorkerConnection, "the connection is of another driver");
  return connection;
}

async function runNamed(
  connection: DatabaseConnection,
  command: string,
  name: string,
): Promise<void> {
  await connection.executeQuery(CompiledQuery.raw(`${command} "${name.replaceAll('"', '""')}"`));
}

/** The threads that queries run on: reads on one, writes on the other, which commits share. */
export interface WorkerConnectionOptions {
  reader: DatabaseWorker;
  writer: DatabaseWorker;
  turn: WriterTurn;
  /** The tables of sums; they are folded before a query reads them. */
  sums: SumTables;
  /**
   * Milliseconds after which a transaction that holds the writer is rolled back, since commits wait
   * behind it; absent means no limit.
   */
  maxTransactionMs?: number;
}

/** Matches raw SQL that cannot write. SQLite has no data-modifying CTEs. */
const readsOnly = /^\s*select\b/i;

/**
 * A use of the database by Kysely: a single query, or a transaction that holds the writer's turn.
 */
class WorkerConnection implements DatabaseConnection {
  readonly #options: WorkerConnectionOptions;
  #state: "idle" | "transaction" | "expired" = "idle";
  #expiryTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: WorkerConnectionOptions) {
    this.#options = options;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return toQueryResult<Row>(await this.#run(query));
  }

  // Kysely's interface requires it; a cursor would keep a thread busy between messages.
  async *streamQuery<Row>(query: CompiledQuery): AsyncIterableIterator<QueryResult<Row>> {
    yield await this.executeQuery<Row>(query);
  }

  async begin(): Promise<void> {
    const { turn, writer, maxTransactionMs } = this.#options;
    await turn.acquire();
    this.#state = "transaction";
    try {
      // No commit comes in between, so that the sums contain exactly what the transaction sees.
      await writer.whenFolded();
      await writer.request({ kind: "query", sql: "BEGIN IMMEDIATE", parameters: [] });
    } catch (error) {
      this.release();
      throw error;
    }
    if (maxTransactionMs !== undefined)
      this.#expiryTimer = setTimeout(() => this.#expire(), maxTransactionMs);
  }

  async commit(): Promise<void> {
    this.#requireUnexpired();
    clearTimeout(this.#expiryTimer);
    await this.#options.writer.request({ kind: "query", sql: "COMMIT", parameters: [] });
    this.release();
  }

  async rollback(): Promise<void> {
    if (this.#state === "transaction") await this.#options.writer.request({ kind: "rollback" });
    this.release();
  }

  /** Gives the turn back if a transaction still holds it. */
  release(): void {
    clearTimeout(this.#expiryTimer);
    if (this.#state !== "transaction") return;
    this.#state = "idle";
    this.#options.turn.release();
  }

  #run({ sql, parameters, query }: CompiledQuery): Promise<QueryRows> {
    this.#requireUnexpired();
    const { reader, writer, turn } = this.#options;
    const request = { kind: "query", sql, parameters } as const;
    if (this.#state === "transaction") return writer.request(request);
    const folded = readsSums(sql) ? writer.whenFolded() : undefined;
    if (SelectQueryNode.is(query) || readsOnly.test(sql)) {
      return folded === undefined
        ? reader.request(request)
        : folded.then(() => reader.request(request));
    }
    const write = (): Promise<QueryRows> =>
      new Promise((resolve, reject) => {
        turn.whenFree(() => writer.request(request).then(resolve, reject));
      });
    return folded === undefined ? write() : folded.then(write);
  }

  #expire(): void {
    this.#options.writer.request({ kind: "rollback" }).catch(() => undefined);
    this.release();
    this.#state = "expired";
  }

  #requireUnexpired(): void {
    if (this.#state !== "expired") return;
    const { maxTransactionMs } = this.#options;
    throw new StorageUnavailableError(
      `the transaction took longer than ${maxTransactionMs} ms and was rolled back`,
    );
  }
}

function toQueryResult<Row>({
  columns,
  rows,
  changes,
  lastInsertRowid,
}: QueryRows): QueryResult<Row> {
  const objects = rows.map(
    (row) => Object.fromEntries(columns.map((column, index) => [column, row[index]])) as Row,
  );
  return {
    rows: objects,
    numAffectedRows: BigInt(changes ?? rows.length),
    ...(lastInsertRowid === undefined ? {} : { insertId: BigInt(lastInsertRowid) }),
  };
}
