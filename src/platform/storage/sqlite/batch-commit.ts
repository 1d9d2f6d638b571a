import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import type {
  AddStatement,
  CommitStatements,
  PackedUnit,
  InsertStatement,
} from "../commit-queue.ts";
import { formatText, growthFormatOf, growthText, readGrowths } from "../growths.ts";
import { addGrowths, groupInserts, mergeAdds, type MergedUnits } from "../merge-units.ts";
import { engineErrorOf, isDatabaseWide, type BatchRefusal } from "./worker-protocol.ts";

/**
 * With so many sums to be written a fold is due: commits wait behind it, so it stays short.
 */
const maxUnfoldedSums = 512;

/**
 * Commits batches: their rows, and one row of what they make grow. That is folded into the sums
 * later, once for all batches since, in a transaction that takes those rows away; so the sums and
 * the rows together count every commit exactly once, whenever the process ends.
 */
export class BatchCommit {
  readonly #database: Database;
  readonly #inserts: readonly Statement[];
  readonly #adds: readonly Statement[];
  /** How many sums a row of each add makes grow. */
  readonly #weights: readonly number[];
  readonly #statement: Record<
    "begin" | "commit" | "rollback" | "append" | "clear" | "probe",
    Statement
  >;
  /** What is committed and not folded yet; the same as the rows of `commit_growths`. */
  #unfolded: MergedUnits["adds"] = [];

  constructor({ database, statements }: { database: Database; statements: CommitStatements }) {
    const format = growthFormatOf(statements.adds);
    createTables(database);
    database.run("INSERT OR IGNORE INTO commit_formats VALUES (?, ?)", [
      format.id,
      formatText(format),
    ]);
    this.#database = database;
    this.#inserts = statements.inserts.map((statement) => database.prepare(insertSql(statement)));
    this.#adds = statements.adds.map((statement) => database.prepare(addSql(statement)));
    this.#weights = statements.adds.map(({ spreadsTo }) => spreadsTo?.length ?? 1);
    this.#statement = {
      begin: database.prepare("BEGIN IMMEDIATE"),
      commit: database.prepare("COMMIT"),
      rollback: database.prepare("ROLLBACK"),
      append: database.prepare(
        `INSERT INTO commit_growths (format, growths) VALUES ('${format.id}', ?)`,
      ),
      clear: database.prepare("DELETE FROM commit_growths"),
      probe: database.prepare("UPDATE commit_formats SET id = id"),
    };
  }

  /** Whether every sum counts all that was committed. */
  get isFolded(): boolean {
    return this.#unfolded.length === 0;
  }

  /** Whether a fold should not wait for its time. */
  get isDue(): boolean {
    let count = 0;
    this.#unfolded.forEach((sums, index) => (count += sums.size * (this.#weights[index] ?? 1)));
    return count >= maxUnfoldedSums;
  }

  /** Commits a batch but for the units that it returns, of which nothing stands. */
  apply(units: readonly PackedUnit[]): BatchRefusal[] {
    const refusals: BatchRefusal[] = [];
    this.#applyRange(units, { offset: 0, refusals });
    return refusals;
  }

  /**
   * Adds to the sums what was committed since the last time. Throws what the engine says; it is
   * then still to be folded.
   */
  fold(): void {
    if (this.isFolded) return;
    this.#transact(() => {
      grow(this.#adds, this.#unfolded);
      this.#statement.clear.run();
    });
    this.#unfolded = [];
  }

  /** Commits a change that changes nothing. Throws what the engine says. */
  probe(): void {
    this.#transact(() => this.#statement.probe.run());
  }

  /** Folds what is left and lets go of the statements, which would keep the connection open. */
  close(): void {
    this.fold();
    const statements = [...this.#inserts, ...this.#adds, ...Object.values(this.#statement)];
    for (const statement of statements) statement.finalize();
  }

  /**
   * Halves a refused batch until the units at fault stand alone: few extra writes, and the others
   * go through.
   */
  #applyRange(
    units: readonly PackedUnit[],
    { offset, refusals }: { offset: number; refusals: BatchRefusal[] },
  ): void {
    try {
      this.#write(units);
    } catch (error) {
      const { message, code } = engineErrorOf(error);
      if (units.length === 1 || isDatabaseWide(code)) {
        units.forEach((_, index) => refusals.push([offset + index, message, code]));
        return;
      }
      const middle = units.length >> 1;
      this.#applyRange(units.slice(0, middle), { offset, refusals });
      this.#applyRange(units.slice(middle), { offset: offset + middle, refusals });
    }
  }

  #write(units: readonly PackedUnit[]): void {
    const growths = mergeAdds(units);
    this.#transact(() => {
      groupInserts(units).forEach((rows, index) => {
        for (const row of rows) this.#inserts[index]?.run(...(row as SQLQueryBindings[]));
      });
      if (growths.length > 0) this.#statement.append.run(growthText(growths));
    });
    addGrowths(this.#unfolded, growths);
  }

  #transact(work: () => void): void {
    this.#statement.begin.run();
    try {
      work();
      this.#statement.commit.run();
    } catch (error) {
      // An engine that is in trouble has ended the transaction by itself.
      if (this.#database.inTransaction) this.#statement.rollback.run();
      throw error;
    }
  }
}

/**
 * Folds what the last gateway left that ended before it could, by that gateway's own statements and
 * tables. Throws what the engine says; all of it is then still there.
 */
export function foldWhatIsLeft(database: Database): void {
  createTables(database);
  using reading = database.prepare(
    `SELECT format, sums FROM (SELECT DISTINCT format FROM commit_growths)
     LEFT JOIN commit_formats ON id = format`,
  );
  const formats = reading.values() as [string, string][];
  if (formats.length === 0) return;
  try {
    database.transaction(() => {
      for (const [id, text] of formats) foldFormat(database, { id, text });
      database.run("DELETE FROM commit_growths");
    })();
  } catch (error) {
    const { message, code } = engineErrorOf(error);
    throw Object.assign(
      new Error(
        `sums that the last run left behind could not be folded into ${database.filename}: ${message}`,
      ),
      { code },
    );
  }
}

function foldFormat(database: Database, { id, text }: { id: string; text: string }): void {
  const adds = JSON.parse(text) as AddStatement[];
  using reading = database.prepare("SELECT growths FROM commit_growths WHERE format = ?");
  const texts = reading.values(id).map(([growths]) => String(growths));
  const adding = adds.map((statement) => database.prepare(addSql(statement)));
  grow(adding, readGrowths(texts, { adds }));
  for (const statement of adding) statement.finalize();
}

function grow(adds: readonly Statement[], growths: MergedUnits["adds"]): void {
  growths.forEach((additions, index) => {
    for (const { key, sums } of additions.values())
      adds[index]?.run(...(key as SQLQueryBindings[]), ...sums);
  });
}

function createTables(database: Database): void {
  database.run(
    "CREATE TABLE IF NOT EXISTS commit_formats (id text not null primary key, sums text not null) STRICT",
  );
  database.run(
    "CREATE TABLE IF NOT EXISTS commit_growths (id integer primary key, format text not null, growths text not null) STRICT",
  );
}

const quoted = (name: string): string => `"${name}"`;
const list = (names: readonly string[]): string => names.map(quoted).join(", ");
const places = (count: number): string => Array.from({ length: count }, () => "?").join(", ");

/** SQL of an insert, one place a column. */
function insertSql({ table, columns }: InsertStatement): string {
  return `INSERT INTO ${quoted(table)} (${list(columns)}) VALUES (${places(columns.length)})`;
}

/** SQL that makes a counter row or grows it; parameters are the key, then the sums. */
function addSql({ table, keyColumns, sumColumns }: AddStatement): string {
  const columns = [...keyColumns, ...sumColumns];
  const growth = sumColumns.map(
    (column) => `${quoted(column)} = ${quoted(column)} + excluded.${quoted(column)}`,
  );
  return (
    `INSERT INTO ${quoted(table)} (${list(columns)}) VALUES (${places(columns.length)})` +
    ` ON CONFLICT (${list(keyColumns)}) DO UPDATE SET ${growth.join(", ")}`
  );
}
