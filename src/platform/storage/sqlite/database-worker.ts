import type { PackedUnit } from "../commit-queue.ts";
import type { BatchWriter, UnitFailure } from "../group-commit-queue.ts";
import { DatabaseError, StorageUnavailableError } from "../storage-error.ts";
import {
  isDatabaseWide,
  type BatchRefusal,
  type QueryRows,
  restedMessage,
  restsAfter,
  type WorkerRequest,
  type WorkerResponse,
} from "./worker-protocol.ts";

/** A request without its id, for each kind separately. */
type RequestBody = WorkerRequest extends infer Request
  ? Request extends { id: number }
    ? Omit<Request, "id">
    : never
  : never;

interface Waiter {
  resolve: (result: QueryRows) => void;
  reject: (error: Error) => void;
}

/** Receives the reply to a batch. */
interface BatchWaiter {
  resolve(reply: string): void;
  reject(error: Error): void;
}

const noRows: QueryRows = { columns: [], rows: [] };

/** The main thread's end of a database thread. */
export class DatabaseWorker {
  readonly #worker: Worker;
  readonly #waiters = new Map<number, Waiter>();
  #batch: BatchWaiter | undefined;
  #rest: { over: Promise<void>; resolve: () => void } | undefined;
  #lastId = 0;
  /**
   * The number of batches that were sent, and the last of them that is known to be folded into the
   * sums.
   */
  #batchesSent = 0;
  #batchesFolded = 0;
  #failure: StorageUnavailableError | undefined;

  constructor() {
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url).href);
    this.#worker.onmessage = ({ data }: MessageEvent<string | WorkerResponse>) => {
      if (data === restedMessage) this.#rest?.resolve();
      else if (typeof data === "string") this.#settleBatch(data);
      else this.#settle(data);
    };
    this.#worker.onerror = (event) => this.#fail(event.message);
    this.#worker.addEventListener("close", () => this.#fail("the database thread ended"));
  }

  /** Sends one request. Rejects with a `DatabaseError` that carries the engine's code. */
  request(body: RequestBody): Promise<QueryRows> {
    return new Promise((resolve, reject) => {
      if (this.#failure) throw this.#failure;
      const id = ++this.#lastId;
      this.#worker.postMessage({ ...body, id });
      this.#waiters.set(id, { resolve, reject });
    });
  }

  /**
   * Resolves when the thread's rest after the last batch is over; undefined when it is not resting.
   */
  whenRested(): Promise<void> | undefined {
    return this.#rest?.over;
  }

  /** Sends a batch of this many units as JSON, and calls the waiter once; one batch at a time. */
  applyBatch(json: string, unitCount: number, waiter: BatchWaiter): void {
    if (this.#failure) return waiter.reject(this.#failure);
    if (restsAfter(unitCount)) this.#beginRest();
    this.#batch = waiter;
    this.#batchesSent += 1;
    this.#worker.postMessage(json);
  }

  /**
   * Resolves when the sums contain every batch that was sent; undefined when they do, so that a
   * query of them is sent in the same turn.
   */
  whenFolded(): Promise<void> | undefined {
    const sent = this.#batchesSent;
    if (sent === this.#batchesFolded) return undefined;
    return this.request({ kind: "fold" }).then(() => {
      this.#batchesFolded = Math.max(this.#batchesFolded, sent);
    });
  }

  /** Closes the connection, which releases its locks, and ends the thread. */
  async close(): Promise<void> {
    if (!this.#failure) await this.request({ kind: "close" });
    this.#fail("the storage is closed");
    this.#worker.terminate();
  }

  #beginRest(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const rest = {
      over: promise,
      resolve: () => {
        if (this.#rest === rest) this.#rest = undefined;
        resolve();
      },
    };
    this.#rest = rest;
  }

  #settleBatch(reply: string): void {
    this.#batch?.resolve(reply);
    this.#batch = undefined;
  }

  #settle({ id, result, error }: WorkerResponse): void {
    const waiter = this.#waiters.get(id);
    this.#waiters.delete(id);
    if (error) waiter?.reject(new DatabaseError(error.message, error.code));
    else waiter?.resolve(result ?? noRows);
  }

  #fail(message: string): void {
    this.#failure ??= new StorageUnavailableError(message);
    for (const waiter of this.#waiters.values()) waiter.reject(this.#failure);
    this.#waiters.clear();
    this.#batch?.reject(this.#failure);
    this.#batch = undefined;
    this.#rest?.resolve();
  }
}

/** Sends batches to the writer's thread, between Kysely's transactions. */
export class SqliteBatchWriter implements BatchWriter {
  readonly #writer: DatabaseWorker;
  readonly #turn: WriterTurn;

  constructor({ writer, turn }: { writer: DatabaseWorker; turn: WriterTurn }) {
    this.#writer = writer;
    this.#turn = turn;
  }

  whenReady(): Promise<void> | undefined {
    return this.#writer.whenRested();
  }

  write(units: readonly PackedUnit[]): Promise<readonly UnitFailure[]> {
    const json = JSON.stringify(units);
    return new Promise((resolve, reject) => {
      const waiter = { resolve: (reply: string) => resolve(failuresIn(reply)), reject };
      this.#turn.whenFree(() => this.#writer.applyBatch(json, units.length, waiter));
    });
  }

  /** Runs a transaction of its own that changes nothing. */
  async probe(): Promise<void> {
    await new Promise<unknown>((resolve, reject) => {
      this.#turn.whenFree(() => this.#writer.request({ kind: "probe" }).then(resolve, reject));
    });
  }
}

const noFailures: readonly UnitFailure[] = [];

const failuresIn = (reply: string): readonly UnitFailure[] =>
  reply === "" ? noFailures : (JSON.parse(reply) as BatchRefusal[]).map(failureOf);

const failureOf = ([index, message, code]: BatchRefusal): UnitFailure => ({
  index,
  error: isDatabaseWide(code)
    ? new StorageUnavailableError(message)
    : new DatabaseError(message, code),
});

/**
 * Serialises access to the writer's connection. A transaction spans several messages and holds the
 * turn. Single statements and batches are one message each, and wait only while a transaction holds
 * it.
 */
export class WriterTurn {
  #held = false;
  readonly #waiting: { exclusive: boolean; enter: () => void }[] = [];

  /** Resolves when the caller has exclusive use of the connection, until it calls `release`. */
  acquire(): Promise<void> {
    return new Promise((resolve) => this.#enter({ exclusive: true, enter: resolve }));
  }

  /**
   * Sends one message at once, or when the turn is free. `send` runs inside `release`, so that its
   * message precedes all that the next transaction sends.
   */
  whenFree(send: () => void): void {
    this.#enter({ exclusive: false, enter: send });
  }

  /** Admits the callers that wait, in order, up to and including the next transaction. */
  release(): void {
    this.#held = false;
    while (!this.#held) {
      const next = this.#waiting.shift();
      if (!next) return;
      this.#held = next.exclusive;
      next.enter();
    }
  }

  #enter(caller: { exclusive: boolean; enter: () => void }): void {
    if (this.#held) {
      this.#waiting.push(caller);
      return;
    }
    this.#held = caller.exclusive;
    caller.enter();
  }
}
