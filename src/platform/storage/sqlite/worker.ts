/**
 * The entry point of the database threads: one owns the connection that writes, the other the one
 * that reads. Requests are answered in the order in which they came.
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../kernel/assert.ts";
import type { PackedUnit } from "../commit-queue.ts";
import { BatchCommit, foldWhatIsLeft } from "./batch-commit.ts";
import {
  engineErrorOf,
  restedMessage,
  restMs,
  restsAfter,
  type OpenRequest,
  type QueryRows,
  type WorkerRequest,
  type WorkerResponse,
} from "./worker-protocol.ts";
import { openConnection, takeProcessLock } from "./sqlite-connection.ts";
import { QueryRunner } from "./query-runner.ts";

declare const self: Worker;

class DatabaseThread {
  #lock: Database | undefined;
  #database: Database | undefined;
  #runner: QueryRunner | undefined;
  commits: BatchCommit | undefined;

  answer(request: WorkerRequest): QueryRows | undefined {
    switch (request.kind) {
      case "open":
        return this.#open(request.options);
      case "prepare":
        return this.#prepare(request);
      case "query":
        return opened(this.#runner).run(request.sql, request.parameters);
      case "fold":
        return this.#fold();
      case "probe":
        return this.#probe();
      case "rollback":
        return this.#rollback();
      case "close":
        return this.#close();
    }
  }

  applyBatch(units: readonly PackedUnit[]): string {
    const refusals = opened(this.commits).apply(units);
    return refusals.length === 0 ? "" : JSON.stringify(refusals);
  }

  #open(options: OpenRequest): undefined {
    if (options.role === "writer")
      this.#lock = takeProcessLock(options.path, options.lockTimeoutMs);
    this.#database = openConnection(options);
    this.#runner = new QueryRunner(this.#database);
    if (options.role === "writer") foldWhatIsLeft(this.#database);
  }

  #prepare({ statements }: Extract<WorkerRequest, { kind: "prepare" }>): undefined {
    this.commits = new BatchCommit({ database: opened(this.#database), statements });
  }

  /**
   * Folds the growth of commits. While a transaction of another caller is open there is nothing to
   * fold: it begins with a fold, and commits wait for it.
   */
  #fold(): undefined {
    this.commits?.fold();
  }

  #probe(): undefined {
    opened(this.commits).probe();
  }

  /**
   * Rolls back. The engine ends some failed transactions by itself, and then there is nothing left
   * to roll back.
   */
  #rollback(): undefined {
    if (this.#database?.inTransaction) this.#database.run("ROLLBACK");
  }

  /**
   * Closes the connection, after which another one may be opened. Throws if a statement is still in
   * use, since the file would stay locked then.
   */
  #close(): undefined {
    this.commits?.close();
    this.#runner?.close();
    this.#database?.close(true);
    this.#lock?.close();
    this.commits = this.#runner = this.#database = this.#lock = undefined;
  }
}

function opened<Part>(part: Part | undefined): Part {
  assert(part !== undefined, "the database thread was used before it was opened");
  return part;
}

const thread = new DatabaseThread();

function respond(request: WorkerRequest): WorkerResponse {
  try {
    const result = thread.answer(request);
    return result ? { id: request.id, result } : { id: request.id };
  } catch (error) {
    return { id: request.id, error: engineErrorOf(error) };
  }
}

const sleepCell = new Int32Array(new SharedArrayBuffer(4));

/** Milliseconds that the sums may lag behind the commits while no query reads them. */
const foldEveryMs = 1_000;

let foldTimer: ReturnType<typeof setTimeout> | undefined;

/**
 * Folds soon, so that the sums do not lag for long. A failed fold is tried again, and fails the
 * queries that read sums before it succeeds.
 */
function foldSoon(): void {
  if (thread.commits?.isDue) foldNow();
  else if (thread.commits?.isFolded === false) foldTimer ??= setTimeout(foldNow, foldEveryMs);
}

function foldNow(): void {
  clearTimeout(foldTimer);
  foldTimer = undefined;
  try {
    thread.commits?.fold();
  } catch {
    foldTimer = setTimeout(foldNow, foldEveryMs);
  }
}

/** Answers a batch at once, and only then does the work that no caller waits for. */
function takeBatch(json: string): void {
  const units = JSON.parse(json) as PackedUnit[];
  self.postMessage(thread.applyBatch(units));
  foldSoon();
  if (!restsAfter(units.length)) return;
  Atomics.wait(sleepCell, 0, 0, restMs);
  self.postMessage(restedMessage);
}

self.onmessage = ({ data }: MessageEvent<string | WorkerRequest>) => {
  if (typeof data === "string") takeBatch(data);
  else self.postMessage(respond(data));
};
