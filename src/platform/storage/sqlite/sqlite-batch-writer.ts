import type { PackedUnit } from "../commit-queue.ts";
import type { BatchWriter, UnitFailure } from "../group-commit-queue.ts";
import { DatabaseError, StorageUnavailableError } from "../storage-error.ts";
import { isDatabaseWide, type BatchRefusal } from "./worker-protocol.ts";
import type { WriterTurn } from "./writer-turn.ts";
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
