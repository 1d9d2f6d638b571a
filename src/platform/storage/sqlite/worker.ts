/**
 * Entry of the database threads: one owns the connection that writes, the other one that reads.
 * Requests are answered in the order in which they came.
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../lib/assert.ts";
import type { PackedUnit } from "../packed-unit.ts";
import { BatchApplier } from "./batch-applier.ts";
import { engineErrorOf } from "./engine-error.ts";
import { QueryRunner } from "./query-runner.ts";
import { openConnection, takeProcessLock } from "./sqlite-connection.ts";
import { restedMessage, restMs, restsAfter, type OpenRequest, type QueryRows, type WorkerRequest, type WorkerResponse } from "./worker-protocol.ts";

declare const self: Worker;

class DatabaseThread {
  #lock: Database | undefined;
  #database: Database | undefined;
  #runner: QueryRunner | undefined;
  #applier: BatchApplier | undefined;

  answer(request: WorkerRequest): QueryRows | undefined {
    switch (request.kind) {
      case "open": return this.#open(request.options);
      case "prepare": return this.#prepare(request);
      case "query": return this.#query(request);
      case "work-off": return this.workOff();
      case "rollback": return this.#rollback();
      case "close": return this.#close();
    }
  }

  /** Brings counters up to date; nothing is noted while a transaction is open, so this never stands inside one. */
  workOff(): undefined {
    this.#applier?.deferred.workOff();
  }

  /** Whether counters wait to be brought up to date, and whether for long enough. */
  get deferred(): { isEmpty: boolean; isDue: boolean } | undefined {
    return this.#applier?.deferred;
  }

  applyBatch(units: readonly PackedUnit[]): string {
    const refusals = this.#opened(this.#applier).apply(units);
    return refusals.length === 0 ? "" : JSON.stringify(refusals);
  }

  #open(options: OpenRequest): undefined {
    if (options.role === "writer") this.#lock = takeProcessLock(options.path, options.lockTimeoutMs);
    this.#database = openConnection(options);
    this.#runner = new QueryRunner(this.#database);
  }

  #query({ sql, parameters }: Extract<WorkerRequest, { kind: "query" }>): QueryRows {
    this.workOff();
    return this.#opened(this.#runner).run(sql, parameters);
  }

  #prepare({ statements }: Extract<WorkerRequest, { kind: "prepare" }>): undefined {
    this.#applier = new BatchApplier(this.#opened(this.#database), statements);
  }

  /** The engine ends some failed transactions by itself; then there is nothing left to roll back. */
  #rollback(): undefined {
    if (this.#database?.inTransaction) this.#database.run("ROLLBACK");
  }

  #close(): undefined {
    this.workOff();
    this.#database?.close();
    this.#lock?.close();
  }

  #opened<Part>(part: Part | undefined): Part {
    assert(part !== undefined, "the database thread was used before it was opened");
    return part;
  }
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

/** How long counters may wait for more growth, in milliseconds. */
const maxDeferralMs = 50;

let workOffTimer: ReturnType<typeof setTimeout> | undefined;

/** Sees to it that counters do not wait for long. What fails is tried again, and told to whoever reads before it succeeds. */
function workOffSoon(): void {
  if (thread.deferred?.isDue) workOffNow();
  else if (!thread.deferred?.isEmpty) workOffTimer ??= setTimeout(workOffNow, maxDeferralMs);
}

function workOffNow(): void {
  clearTimeout(workOffTimer);
  workOffTimer = undefined;
  try {
    thread.workOff();
  } catch {
    workOffTimer = setTimeout(workOffNow, maxDeferralMs);
  }
}

/** Answers a batch at once, and does only then what nobody waits for. */
function takeBatch(json: string): void {
  const units = JSON.parse(json) as PackedUnit[];
  self.postMessage(thread.applyBatch(units));
  workOffSoon();
  if (!restsAfter(units.length)) return;
  Atomics.wait(sleepCell, 0, 0, restMs);
  self.postMessage(restedMessage);
}

self.onmessage = ({ data }: MessageEvent<string | WorkerRequest>) => {
  if (typeof data === "string") takeBatch(data);
  else self.postMessage(respond(data));
};
