import { systemClock } from "../../src/platform/kernel/clock.ts";
import {
  type CommitUnit,
  createUnitPacker,
  type InsertStatement,
  type PackedUnit,
} from "../../src/platform/storage/commit-queue.ts";
import {
  type BatchWriter,
  GroupCommitQueue,
  type GroupCommitOptions,
  type UnitFailure,
} from "../../src/platform/storage/group-commit-queue.ts";

const statement: InsertStatement = { name: "entry", table: "entries", columns: ["id"] };

/** Returns a unit of one row, which consists of its id. */
export const entryUnit = (id: string): CommitUnit => ({
  inserts: [{ statement, values: [id] }],
  adds: [],
});

/** Waits two turns of the event loop: a queue sends at the end of the first. */
export const nextTurn = (): Promise<void> =>
  new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));

/** A writer whose batches end when the test says so. */
export class HeldWriter implements BatchWriter {
  /** The ids of the entries in each batch that was sent. */
  readonly batches: string[][] = [];
  ready: PromiseWithResolvers<void> | undefined;
  /** The failure of the next test write; undefined means that it succeeds. */
  probeFailure: Error | undefined;
  probeCount = 0;
  #current = Promise.withResolvers<readonly UnitFailure[]>();

  whenReady(): Promise<void> | undefined {
    return this.ready?.promise;
  }

  write(units: readonly PackedUnit[]): Promise<readonly UnitFailure[]> {
    this.batches.push(units.map((packed) => String((packed[2] as readonly unknown[])[0])));
    this.#current = Promise.withResolvers();
    return this.#current.promise;
  }

  probe(): Promise<void> {
    this.probeCount += 1;
    return this.probeFailure === undefined ? Promise.resolve() : Promise.reject(this.probeFailure);
  }

  /** Ends the batch in progress; the units that are not named were committed. */
  async finish(failures: readonly UnitFailure[] = []): Promise<void> {
    this.#current.resolve(failures);
    await nextTurn();
  }

  /** Makes the batch in progress fail as a whole. */
  async fail(error: Error): Promise<void> {
    this.#current.reject(error);
    await nextTurn();
  }

  /** Resolves when this many batches were sent. */
  async sent(count: number): Promise<void> {
    while (this.batches.length < count) await nextTurn();
  }

  /** Resolves when this many test writes were made. */
  async probed(count: number): Promise<void> {
    while (this.probeCount < count) await nextTurn();
  }
}

/** Creates a commit queue on a held writer. */
export function queueOnHeldWriter(options: Partial<GroupCommitOptions> = {}): {
  writer: HeldWriter;
  queue: GroupCommitQueue;
} {
  const writer = new HeldWriter();
  const pack = createUnitPacker({ inserts: [statement], adds: [] });
  return { writer, queue: new GroupCommitQueue({ pack, writer, clock: systemClock, ...options }) };
}
