import type { Database, Statement } from "bun:sqlite";
import type { AddStatement, SqlValue } from "../commit-queue.ts";
import { mergeAdd, type MergedAdd, type MergedUnits } from "../merge-units.ts";
import { addSql } from "./commit-sql.ts";

/** One counter's growth as it is noted down; the name survives another order of statements in the next version. */
type NotedAdd = readonly [statement: string, key: readonly SqlValue[], sums: readonly (number | string)[]];

/** After so many batches the notes are worked off. */
const maxNotes = 32;

/**
 * The growth of counters, noted down with the batch that it belongs to and added to the counters later, together with that
 * of other batches. A batch of one unit touches eight counters on as many pages, whose writing took longer than all else.
 * Notes are as durable as their batch; what a crash leaves is worked off when the database is opened.
 */
export class DeferredAdds {
  readonly #database: Database;
  readonly #statements: readonly { name: string; run: Statement }[];
  readonly #note: Statement;
  readonly #forget: Statement;
  readonly #synchronous: string;
  #pending: Map<string, MergedAdd>[] = [];
  #notes = 0;

  constructor(database: Database, statements: readonly AddStatement[]) {
    this.#database = database;
    database.run("CREATE TABLE IF NOT EXISTS noted_adds (sequence integer not null primary key, adds text not null) STRICT");
    this.#statements = statements.map((statement) => ({ name: statement.name, run: database.prepare(addSql(statement)) }));
    this.#note = database.prepare("INSERT INTO noted_adds (adds) VALUES (?)");
    this.#forget = database.prepare("DELETE FROM noted_adds");
    this.#synchronous = String(database.prepare("PRAGMA synchronous").values()[0]?.[0]);
    this.#recall();
  }

  /** Whether every counter stands as it should. */
  get isEmpty(): boolean {
    return this.#notes === 0;
  }

  /** Whether there are enough notes to be worked off now. */
  get isDue(): boolean {
    return this.#notes >= maxNotes;
  }

  /** Notes a batch's growth inside its transaction. */
  note({ adds }: MergedUnits): void {
    const noted: NotedAdd[] = [];
    adds.forEach((additions, index) => {
      const name = this.#statements[index]?.name ?? "";
      for (const { key, sums } of additions.values()) noted.push([name, key, sums.map(portable)]);
    });
    if (noted.length > 0) this.#note.run(JSON.stringify(noted));
  }

  /** Takes over what was noted, once its transaction stands. */
  accept({ adds }: MergedUnits): void {
    if (adds.length === 0) return;
    this.#notes += 1;
    adds.forEach((additions, index) => {
      const pending = (this.#pending[index] ??= new Map());
      for (const [name, { key, sums }] of additions) mergeAdd(pending, { name, key, sums });
    });
  }

  /**
   * Adds all that is noted to the counters, in one transaction. It waits for no disk: where power is lost before the next
   * batch makes it durable, the notes are back. Throws what the engine says; the notes then stay.
   */
  workOff(): void {
    if (this.isEmpty) return;
    this.#database.run("PRAGMA synchronous = NORMAL");
    try {
      this.#addAll();
    } finally {
      this.#database.run(`PRAGMA synchronous = ${this.#synchronous}`);
    }
    this.#pending = [];
    this.#notes = 0;
  }

  #addAll(): void {
    this.#database.run("BEGIN IMMEDIATE");
    try {
      this.#pending.forEach((additions, index) => {
        for (const { key, sums } of additions.values()) this.#statements[index]?.run.run(...key, ...sums);
      });
      this.#forget.run();
      this.#database.run("COMMIT");
    } catch (error) {
      if (this.#database.inTransaction) this.#database.run("ROLLBACK");
      throw error;
    }
  }

  /** Works off what a process left that ended before it could. */
  #recall(): void {
    const rows = this.#database.prepare("SELECT adds FROM noted_adds").values() as [string][];
    for (const [text] of rows) {
      const adds: Map<string, MergedAdd>[] = [];
      for (const [statement, key, sums] of JSON.parse(text) as NotedAdd[]) {
        const index = this.#statements.findIndex(({ name }) => name === statement);
        if (index === -1) throw new Error(`the database holds growth of a counter "${statement}" that this version does not know`);
        mergeAdd(adds[index] ??= new Map(), { name: JSON.stringify(key), key, sums: sums.map(exact) });
      }
      this.accept({ inserts: [], adds });
    }
    this.workOff();
  }
}

/** Sums beyond the exact range of numbers travel as text. */
const portable = (sum: number | bigint): number | string => (typeof sum === "bigint" ? String(sum) : sum);
const exact = (sum: number | string): number | bigint => (typeof sum === "string" ? BigInt(sum) : sum);
