import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../kernel/clock.ts";
import { timeOrderedHex } from "../../kernel/ids.ts";
import type { AddStatement, CommitStatements, PackedUnit } from "../commit-queue.ts";
import type { GrowthFormat } from "../growths.ts";
import type { BatchWriter, UnitFailure } from "../group-commit-queue.ts";
import { StorageUnavailableError } from "../storage-error.ts";
import { commitParameters, type ColumnTypes, commitSql, confirmSql } from "./commit-sql.ts";
import type { CommitSession } from "./commit-session.ts";
import {
  failureKindOf,
  isDatabaseWide,
  SessionLostError,
  storageErrorOf,
} from "./postgres-error.ts";

/** Milliseconds before a batch, or the query for its outcome, is sent again. */
const askAgainMs = 50;

/**
 * The mean duration of a commit from which rows are unlocked before the disk is waited for. Most of
 * such a duration is spent on the disk, or on rows that another gateway has changed.
 */
const slowCommitMs = 3;
/** The weight of the most recent commit in the mean duration. */
const lastWeight = 0.2;

/** Options of the batch writer. */
export interface PostgresBatchWriterOptions {
  session: CommitSession;
  statements: CommitStatements;
  format: GrowthFormat;
  typeOf: ColumnTypes;
  /** Returns whether the commit itself changes a sum. */
  isGuarded(add: AddStatement): boolean;
  /** Whether other gateways may wait for the rows of a commit. */
  severalGateways: boolean;
  /** Called after each committed batch. */
  onCommitted(): void;
  clock: Clock;
  /** Milliseconds for which a batch that the database did not take is retried. */
  retryForMs: number;
}

/**
 * Commits each batch on the commit session, as one statement, and finds out the outcome of a batch
 * whose answer was lost.
 */
export class PostgresBatchWriter implements BatchWriter {
  readonly #options: PostgresBatchWriterOptions;
  readonly #text: string;
  /** The mark of the last batch that is known to be committed; the next batch removes it. */
  #forgettableId = "";
  /** The mark of the last test write; the next one removes it. */
  #probeId = "";
  /** The mean duration of a commit, in milliseconds. */
  #durationMs = 0;

  constructor(options: PostgresBatchWriterOptions) {
    this.#options = options;
    const { inserts, adds } = options.statements;
    this.#text = commitSql({ inserts, adds: adds.filter(options.isGuarded) }, options);
  }

  whenReady(): Promise<void> | undefined {
    return this.#options.session.whenOpen();
  }

  async write(units: readonly PackedUnit[]): Promise<readonly UnitFailure[]> {
    const failures: UnitFailure[] = [];
    await this.#writeRange(units, 0, failures);
    return failures;
  }

  /**
   * Writes an empty batch. It locks all tables of commits, needs the same permissions, and writes
   * its mark.
   */
  async probe(): Promise<void> {
    const { clock, session, statements, isGuarded } = this.#options;
    const nowMs = clock.nowMs();
    const id = timeOrderedHex(nowMs);
    const values = [
      id,
      nowMs,
      this.#probeId,
      false,
      ...commitParameters(statements, { units: [], isGuarded }),
    ];
    await session.query({ name: "commit-batch", text: this.#text, values });
    this.#probeId = id;
  }

  /**
   * Writes a batch, and halves a refused one until the failing units are alone, as the embedded
   * writer does.
   */
  async #writeRange(
    units: readonly PackedUnit[],
    offset: number,
    failures: UnitFailure[],
  ): Promise<void> {
    try {
      await this.#writeTogether(units);
    } catch (error) {
      if (units.length === 1 || isDatabaseWide(error)) {
        const reason = storageErrorOf(error);
        units.forEach((_, index) => failures.push({ index: offset + index, error: reason }));
        return;
      }
      const middle = units.length >> 1;
      await this.#writeRange(units.slice(0, middle), offset, failures);
      await this.#writeRange(units.slice(middle), offset + middle, failures);
    }
  }

  async #writeTogether(units: readonly PackedUnit[]): Promise<void> {
    const { clock, retryForMs, statements, isGuarded, onCommitted } = this.#options;
    const parameters = commitParameters(statements, { units, isGuarded });
    const deadlineMs = clock.monotonicMs() + retryForMs;
    for (;;) {
      const outcome = await this.#attempt(parameters);
      if (outcome === "committed") return onCommitted();
      if (outcome === "busy" && clock.monotonicMs() > deadlineMs) {
        throw new StorageUnavailableError(
          `the database did not take the commit within ${retryForMs} ms`,
        );
      }
    }
  }

  /**
   * Sends a batch once. Unless it is `committed`, nothing of it was written: `busy` when the
   * database did not take it, and `lost` when the session was lost during it. Finding that out may
   * have taken as long as an outage that is over now, so a lost batch is worth another attempt even
   * after the deadline.
   */
  async #attempt(parameters: readonly string[]): Promise<"committed" | "busy" | "lost"> {
    const { clock, session, severalGateways } = this.#options;
    const nowMs = clock.nowMs();
    const id = timeOrderedHex(nowMs);
    const unlocksEarly = severalGateways && this.#durationMs > slowCommitMs;
    const sentAtMs = clock.monotonicMs();
    try {
      const values = [id, nowMs, this.#forgettableId, unlocksEarly, ...parameters];
      await session.query({ name: "commit-batch", text: this.#text, values });
      if (unlocksEarly && !(await this.#becameDurable(id))) return "lost";
      this.#durationMs += lastWeight * (clock.monotonicMs() - sentAtMs - this.#durationMs);
    } catch (error) {
      if (error instanceof SessionLostError && error.sent)
        return (await this.#wasCommitted(id)) ? "committed" : "lost";
      if (!(error instanceof SessionLostError) && failureKindOf(error) !== "passing") throw error;
      await delay(askAgainMs);
      return "busy";
    }
    this.#forgettableId = id;
    return "committed";
  }

  /**
   * Makes a batch durable that was committed without waiting for the disk. Its rows are unlocked
   * meanwhile, so gateways that change the same rows do not wait for each other's disk writes.
   */
  async #becameDurable(id: string): Promise<boolean> {
    try {
      return await this.#wasCommitted(id);
    } catch (error) {
      if (error instanceof StorageUnavailableError) throw error;
      // The batch is committed, but the database takes no more writes. It writes committed batches
      // to its disk within a second.
      return true;
    }
  }

  /**
   * Returns whether a batch has its mark, after its answer was lost or it did not wait for the
   * disk. If so, the batch is durable. The answer is final, because a session that was lost with
   * the batch has ended by the time the next session holds the gateway lock.
   */
  async #wasCommitted(id: string): Promise<boolean> {
    for (;;) {
      await this.#options.session.whenOpen();
      try {
        const found = await this.#options.session.query({
          name: "confirm-batch",
          text: confirmSql,
          values: [id],
        });
        if (found.length > 0) this.#forgettableId = id;
        return found.length > 0;
      } catch (error) {
        if (error instanceof StorageUnavailableError || failureKindOf(error) === "refused")
          throw error;
      }
      await delay(askAgainMs);
    }
  }
}
