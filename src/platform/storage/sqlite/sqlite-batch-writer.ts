import type { BatchWriter, UnitFailure } from "../group-commit-queue.ts";
import type { PackedUnit } from "../packed-unit.ts";
import { DatabaseError, StorageUnavailableError } from "../storage-error.ts";
import type { DatabaseWorker } from "./database-worker.ts";
import { isDatabaseWide } from "./engine-error.ts";
import type { BatchRefusal } from "./worker-protocol.ts";
import type { WriterTurn } from "./writer-turn.ts";

/** Sends batches to the writer's thread, between the transactions of Kysely. */
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

  async write(units: readonly PackedUnit[]): Promise<readonly UnitFailure[]> {
    const json = JSON.stringify(units);
    const reply = await new Promise<string>((resolve, reject) => {
      this.#turn.whenFree(() => this.#writer.applyBatch(json, units.length).then(resolve, reject));
    });
    return reply === "" ? noFailures : (JSON.parse(reply) as BatchRefusal[]).map(failureOf);
  }

  /** A transaction of its own that changes nothing. */
  async probe(): Promise<void> {
    await new Promise<unknown>((resolve, reject) => {
      this.#turn.whenFree(() => this.#writer.request({ kind: "probe" }).then(resolve, reject));
    });
  }
}

const noFailures: readonly UnitFailure[] = [];

const failureOf = ([index, message, code]: BatchRefusal): UnitFailure => ({
  index,
  error: isDatabaseWide(code)
    ? new StorageUnavailableError(message)
    : new DatabaseError(message, code),
});
