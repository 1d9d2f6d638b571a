import {
  type CompiledQuery,
  type DatabaseConnection,
  type QueryResult,
  SelectQueryNode,
} from "kysely";
import { StorageUnavailableError } from "../storage-error.ts";
import type { DatabaseWorker } from "./database-worker.ts";
import type { QueryRows } from "./worker-protocol.ts";
import type { WriterTurn } from "./writer-turn.ts";

export interface WorkerConnectionOptions {
  reader: DatabaseWorker;
  writer: DatabaseWorker;
  turn: WriterTurn;
  /** A transaction that holds the writer longer is rolled back: commits wait behind it. Absent means no limit. */
  maxTransactionMs?: number;
}

/** Raw SQL that cannot write; data-changing CTEs do not exist in SQLite. */
const readsOnly = /^\s*select\b/i;

/** One use of the database by Kysely: a single query, or a transaction that holds the writer's turn. */
export class WorkerConnection implements DatabaseConnection {
  readonly #options: WorkerConnectionOptions;
  #state: "idle" | "transaction" | "expired" = "idle";
  #expiryTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: WorkerConnectionOptions) {
    this.#options = options;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return toQueryResult<Row>(await this.#run(query));
  }

  // Kysely's interface asks for it; a cursor would keep a thread busy between messages.
  async *streamQuery<Row>(query: CompiledQuery): AsyncIterableIterator<QueryResult<Row>> {
    yield await this.executeQuery<Row>(query);
  }

  async begin(): Promise<void> {
    const { turn, writer, maxTransactionMs } = this.#options;
    await turn.acquire();
    this.#state = "transaction";
    try {
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
    if (SelectQueryNode.is(query) || readsOnly.test(sql)) {
      const shown = writer.whenShown();
      return shown === undefined
        ? reader.request(request)
        : shown.then(() => reader.request(request));
    }
    return new Promise((resolve, reject) => {
      turn.whenFree(() => writer.request(request).then(resolve, reject));
    });
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
