import { DatabaseError, StorageUnavailableError } from "../storage-error.ts";
import type { QueryRows, WorkerRequest, WorkerResponse } from "./worker-protocol.ts";

/** A request without its id, each kind apart. */
type RequestBody = WorkerRequest extends infer Request
  ? Request extends { id: number } ? Omit<Request, "id"> : never
  : never;

interface Waiter {
  resolve: (result: QueryRows) => void;
  reject: (error: Error) => void;
}

const noRows: QueryRows = { columns: [], rows: [] };

/** The main thread's end of a database thread. */
export class DatabaseWorker {
  readonly #worker: Worker;
  readonly #waiters = new Map<number, Waiter>();
  #batch: { resolve: (reply: string) => void; reject: (error: Error) => void } | undefined;
  #lastId = 0;
  #failure: StorageUnavailableError | undefined;

  constructor() {
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url).href);
    this.#worker.onmessage = ({ data }: MessageEvent<string | WorkerResponse>) => {
      if (typeof data === "string") this.#settleBatch(data);
      else this.#settle(data);
    };
    this.#worker.onerror = (event) => this.#fail(event.message);
    this.#worker.addEventListener("close", () => this.#fail("the database thread ended"));
  }

  /** Sends one request; rejects with a `DatabaseError` that carries the engine's code. */
  request(body: RequestBody): Promise<QueryRows> {
    return new Promise((resolve, reject) => {
      if (this.#failure) throw this.#failure;
      const id = ++this.#lastId;
      this.#worker.postMessage({ ...body, id });
      this.#waiters.set(id, { resolve, reject });
    });
  }

  /** Sends a batch as JSON and resolves to the reply; one batch at a time. */
  applyBatch(json: string): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#failure) throw this.#failure;
      this.#batch = { resolve, reject };
      this.#worker.postMessage(json);
    });
  }

  /** Closes the connection, which frees its locks, and ends the thread. */
  async close(): Promise<void> {
    if (!this.#failure) await this.request({ kind: "close" });
    this.#fail("the storage is closed");
    this.#worker.terminate();
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
  }
}
