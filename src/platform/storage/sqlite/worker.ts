/**
 * Entry of the database threads: one owns the connection that writes, the other one that reads.
 * Requests are answered in the order in which they came.
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../lib/assert.ts";
import type { PackedUnit } from "../packed-unit.ts";
import { applyBatch } from "./batch-applier.ts";
import { CommitJournal, journalPath } from "./commit-journal.ts";
import { DeferredCommit } from "./deferred-commit.ts";
import { engineErrorOf } from "./engine-error.ts";
import { beginJournal, commitWhatIsLeft } from "./left-commits.ts";
import { QueryRunner } from "./query-runner.ts";
import { openConnection, takeProcessLock } from "./sqlite-connection.ts";
import {
  restedMessage,
  restMs,
  restsAfter,
  type OpenRequest,
  type QueryRows,
  type WorkerRequest,
  type WorkerResponse,
} from "./worker-protocol.ts";

declare const self: Worker;

class DatabaseThread {
  #lock: Database | undefined;
  #database: Database | undefined;
  #runner: QueryRunner | undefined;
  #journal: CommitJournal | undefined;
  /** Commits that are durable and that the database does not show yet. */
  deferred: DeferredCommit | undefined;

  answer(request: WorkerRequest): QueryRows | undefined {
    switch (request.kind) {
      case "open":
        return this.#open(request.options);
      case "prepare":
        return this.#prepare(request);
      case "query":
        return this.#query(request);
      case "work-off":
        return this.workOff();
      case "probe":
        return opened(this.deferred).probe();
      case "rollback":
        return this.#rollback();
      case "close":
        return this.#close();
    }
  }

  /** Lets the database show every commit; none waits while a transaction of others is open, so this never stands inside one. */
  workOff(): undefined {
    this.deferred?.workOff();
  }

  applyBatch(units: readonly PackedUnit[], json: string): string {
    const refusals = applyBatch(opened(this.deferred), units, json);
    return refusals.length === 0 ? "" : JSON.stringify(refusals);
  }

  #open(options: OpenRequest): undefined {
    if (options.role === "writer")
      this.#lock = takeProcessLock(options.path, options.lockTimeoutMs);
    this.#database = openConnection(options);
    this.#runner = new QueryRunner(this.#database);
    if (options.role === "reader") return;
    this.#journal = new CommitJournal(journalPath(options.path), {
      reachesDisk: options.synchronous === "FULL",
    });
    commitWhatIsLeft(this.#database, this.#journal);
  }

  #query({ sql, parameters }: Extract<WorkerRequest, { kind: "query" }>): QueryRows {
    this.workOff();
    return opened(this.#runner).run(sql, parameters);
  }

  #prepare({ statements }: Extract<WorkerRequest, { kind: "prepare" }>): undefined {
    const parts = { database: opened(this.#database), journal: opened(this.#journal), statements };
    beginJournal(parts);
    this.deferred = new DeferredCommit(parts);
  }

  /** The engine ends some failed transactions by itself; then there is nothing left to roll back. */
  #rollback(): undefined {
    if (this.deferred?.isEmpty !== false && this.#database?.inTransaction)
      this.#database.run("ROLLBACK");
  }

  #close(): undefined {
    this.workOff();
    this.#database?.close();
    this.#journal?.close();
    this.#lock?.close();
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

/** How long a commit may wait for others until the database shows it, in milliseconds. */
const maxDeferralMs = 50;

let workOffTimer: ReturnType<typeof setTimeout> | undefined;

/** Sees to it that nothing waits for long. What fails is tried again, and told to whoever reads before it succeeds. */
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
  self.postMessage(thread.applyBatch(units, json));
  workOffSoon();
  if (!restsAfter(units.length)) return;
  Atomics.wait(sleepCell, 0, 0, restMs);
  self.postMessage(restedMessage);
}

self.onmessage = ({ data }: MessageEvent<string | WorkerRequest>) => {
  if (typeof data === "string") takeBatch(data);
  else self.postMessage(respond(data));
};
