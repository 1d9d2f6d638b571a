import { DatabaseError, StorageUnavailableError } from "../storage-error.ts";
import {
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
