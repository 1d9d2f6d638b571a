import type { PackedUnit } from "../commit-queue.ts";
import type { BatchWriter, UnitFailure } from "../group-commit-queue.ts";
import { DatabaseError, StorageUnavailableError } from "../storage-error.ts";
import { isDatabaseWide, type BatchRefusal } from "./worker-protocol.ts";
import type { DatabaseWorker } from "./database-worker.ts";

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
    return new Promise((resolve, reject) => {
      const json = JSON.stringify(units);
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
class WriterTurn {
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

export type { WriterTurn };

/** Creates the turn of a writer, which nothing holds yet. */
export const newWriterTurn = (): WriterTurn => new WriterTurn();
