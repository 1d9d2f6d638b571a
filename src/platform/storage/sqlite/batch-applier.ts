import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import type { SqlValue } from "../commit-queue.ts";
import { mergeUnits } from "../merge-units.ts";
import type { CommitStatements, PackedUnit } from "../packed-unit.ts";
import { insertSql } from "./commit-sql.ts";
import { DeferredAdds } from "./deferred-adds.ts";
import { engineErrorOf, isDatabaseWide } from "./engine-error.ts";
import type { BatchRefusal } from "./worker-protocol.ts";

/** Applies batches of packed units on the writer's connection, each in one transaction. */
export class BatchApplier {
  /** Growth of counters that is durable, and waits to be added to them. */
  readonly deferred: DeferredAdds;
  readonly #database: Database;
  readonly #inserts: Statement[];
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #rollback: Statement;

  constructor(database: Database, statements: CommitStatements) {
    this.#database = database;
    this.#inserts = statements.inserts.map((statement) => database.prepare(insertSql(statement)));
    this.deferred = new DeferredAdds(database, statements.adds);
    this.#begin = database.prepare("BEGIN IMMEDIATE");
    this.#commit = database.prepare("COMMIT");
    this.#rollback = database.prepare("ROLLBACK");
  }

  /** Makes the batch durable but for the units it returns. */
  apply(units: readonly PackedUnit[]): BatchRefusal[] {
    const refusals: BatchRefusal[] = [];
    this.#applyRange(units, 0, refusals);
    return refusals;
  }

  /** Halves a refused batch until the units at fault stand alone: few extra commits, and the others go through. */
  #applyRange(units: readonly PackedUnit[], offset: number, refusals: BatchRefusal[]): void {
    try {
      this.#writeTogether(units);
    } catch (error) {
      const { message, code } = engineErrorOf(error);
      if (units.length === 1 || isDatabaseWide(code)) {
        for (let index = 0; index < units.length; index++) refusals.push([offset + index, message, code]);
        return;
      }
      const middle = units.length >> 1;
      this.#applyRange(units.slice(0, middle), offset, refusals);
      this.#applyRange(units.slice(middle), offset + middle, refusals);
    }
  }

  #writeTogether(units: readonly PackedUnit[]): void {
    const merged = mergeUnits(units);
    this.#begin.run();
    try {
      merged.inserts.forEach((rows, index) => this.#insert(index, rows));
      this.deferred.note(merged);
      this.#commit.run();
    } catch (error) {
      if (this.#database.inTransaction) this.#rollback.run();
      throw error;
    }
    this.deferred.accept(merged);
  }

  #insert(index: number, rows: readonly (readonly SqlValue[])[]): void {
    const statement = this.#inserts[index];
    for (const row of rows) statement?.run(...(row as SQLQueryBindings[]));
  }
}
