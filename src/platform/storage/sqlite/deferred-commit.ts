import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import { groupInserts, mergeAdds } from "../merge-units.ts";
import type { CommitStatements, PackedUnit } from "../packed-unit.ts";
import { addSql, insertSql } from "./commit-sql.ts";
import { newMark, type CommitJournal } from "./commit-journal.ts";

/** With so many units the transaction is committed. */
const maxUnits = 64;
/** A batch of so many units is committed at once: written down first, it would be written twice. */
const largeBatchUnits = 32;

/**
 * A transaction that stays open over several batches. Each batch is inserted in it, so that the database has its say, and is then
 * durable by a record in the journal: one write instead of one for each page that it touches. Counters grow when the
 * transaction is committed, once for all batches. What a crash leaves in the journal is committed when the database is opened.
 */
export class DeferredCommit {
  readonly #database: Database;
  readonly #journal: CommitJournal;
  readonly #inserts: readonly Statement[];
  readonly #adds: readonly Statement[];
  readonly #statement: Record<
    "begin" | "savepoint" | "release" | "undo" | "commit" | "rollback" | "mark",
    Statement
  >;
  /** Units that are durable in the journal and not in the database yet. */
  #accepted: PackedUnit[] = [];

  constructor({
    database,
    journal,
    statements,
  }: { database: Database; journal: CommitJournal; statements: CommitStatements }) {
    this.#database = database;
    this.#journal = journal;
    this.#inserts = statements.inserts.map((statement) => database.prepare(insertSql(statement)));
    this.#adds = statements.adds.map((statement) => database.prepare(addSql(statement)));
    this.#statement = {
      begin: database.prepare("BEGIN IMMEDIATE"),
      savepoint: database.prepare("SAVEPOINT batch"),
      release: database.prepare("RELEASE batch"),
      undo: database.prepare("ROLLBACK TO batch"),
      commit: database.prepare("COMMIT"),
      rollback: database.prepare("ROLLBACK"),
      mark: database.prepare("UPDATE commit_journal SET mark = ?"),
    };
  }

  /** Whether the database holds all that was written. */
  get isEmpty(): boolean {
    return this.#accepted.length === 0;
  }

  /** Whether there are enough units for a commit. */
  get isDue(): boolean {
    return this.#accepted.length >= maxUnits;
  }

  /** Makes units durable, whose text as JSON is `json`. Throws what the engine or the system says; nothing of them stands then. */
  write(units: readonly PackedUnit[], json: string): void {
    this.#begin();
    try {
      this.#statement.savepoint.run();
      this.#insert(units);
    } catch (error) {
      this.#undo();
      throw error;
    }
    if (units.length >= largeBatchUnits || !this.#append(json)) this.#commitWith(units);
    else {
      this.#statement.release.run();
      for (const unit of units) this.#accepted.push(unit);
    }
  }

  /** Commits all that is only written down. Throws what the engine says; it then stays written down. */
  workOff(): void {
    if (!this.isEmpty) this.#commit();
  }

  /** Commits, and a new mark where there is nothing else. Throws what the engine says. */
  probe(): undefined {
    this.#commit();
  }

  /** Takes over what a journal still held, to be committed next. */
  recall(batches: readonly string[]): void {
    for (const batch of batches) this.#accepted.push(...(JSON.parse(batch) as PackedUnit[]));
  }

  /** Opens the transaction where it is not open; where it was lost with an error, with what was in it. */
  #begin(): void {
    if (this.#database.inTransaction) return;
    this.#statement.begin.run();
    try {
      this.#insert(this.#accepted);
    } catch (error) {
      this.#rollback();
      throw error;
    }
  }

  #insert(units: readonly PackedUnit[]): void {
    groupInserts(units).forEach((rows, index) => {
      for (const row of rows) this.#inserts[index]?.run(...(row as SQLQueryBindings[]));
    });
  }

  #append(json: string): boolean {
    try {
      return this.#journal.append(json);
    } catch (error) {
      this.#undo();
      // The record may stand all the same; with the next mark it counts no more.
      this.#commit();
      throw error;
    }
  }

  #commitWith(units: readonly PackedUnit[]): void {
    const { length } = this.#accepted;
    for (const unit of units) this.#accepted.push(unit);
    try {
      this.#commit();
    } catch (error) {
      this.#accepted.length = length;
      throw error;
    }
  }

  #commit(): void {
    const mark = newMark();
    this.#begin();
    try {
      mergeAdds(this.#accepted).forEach((additions, index) => {
        for (const { key, sums } of additions.values()) this.#adds[index]?.run(...key, ...sums);
      });
      this.#statement.mark.run(mark);
      this.#statement.commit.run();
    } catch (error) {
      this.#rollback();
      throw error;
    }
    this.#accepted = [];
    this.#journal.restart(mark);
  }

  /** Takes the last batch back; an engine that is in trouble has ended the transaction by itself. */
  #undo(): void {
    if (this.isEmpty || !this.#database.inTransaction) return this.#rollback();
    this.#statement.undo.run();
    this.#statement.release.run();
  }

  #rollback(): void {
    if (this.#database.inTransaction) this.#statement.rollback.run();
  }
}
