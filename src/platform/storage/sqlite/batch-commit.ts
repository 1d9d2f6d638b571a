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
 * The number of unfolded sums at which a fold is due. Commits wait behind a fold, so it has to stay
 * short.
 */
const maxUnfoldedSums = 512;

/**
 * Commits batches: their rows, and one row of growth. The growth is folded into the sums later,
 * once for all batches since, in a transaction that deletes those rows. So the sums and the rows
 * together count every commit exactly once, whenever the process ends.
 */
export class BatchCommit {
  readonly #database: Database;
  readonly #inserts: readonly Statement[];
  readonly #adds: readonly Statement[];
  /** The number of sums that a row of each add grows. */
  readonly #weights: readonly number[];
  readonly #statement: Record<
    "begin" | "commit" | "rollback" | "append" | "clear" | "probe",
    Statement
  >;
  /** The growth that is committed and not folded yet; the same as the rows of `commit_growths`. */
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

  /** Whether every sum contains all that was committed. */
  get isFolded(): boolean {
    return this.#unfolded.length === 0;
  }

  /** Whether a fold should not wait for its time. */
  get isDue(): boolean {
    let count = 0;
    this.#unfolded.forEach((sums, index) => (count += sums.size * (this.#weights[index] ?? 1)));
    return count >= maxUnfoldedSums;
  }

  /** Commits a batch, except for the units that it returns, of which nothing was written. */
  apply(units: readonly PackedUnit[]): BatchRefusal[] {
    const refusals: BatchRefusal[] = [];
    this.#applyRange(units, { offset: 0, refusals });
    return refusals;
  }

  /**
   * Adds to the sums what was committed since the last fold. Throws the engine's error; the growth
   * is then still to be folded.
   */
  fold(): void {
    if (this.isFolded) return;
    this.#transact(() => {
      grow(this.#adds, this.#unfolded);
      this.#statement.clear.run();
    });
    this.#unfolded = [];
  }

  /** Commits a change that changes nothing. Throws the engine's error. */
  probe(): void {
    this.#transact(() => this.#statement.probe.run());
  }

  /** Folds what is left and releases the statements, which would keep the connection open. */
  close(): void {
    this.fold();
    const statements = [...this.#inserts, ...this.#adds, ...Object.values(this.#statement)];
    for (const statement of statements) statement.finalize();
  }

  /**
   * Divides a refused batch in halves until the failing units are alone: a few extra writes, and
   * the others are committed.
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
      // An engine in trouble has ended the transaction by itself.
      if (this.#database.inTransaction) this.#statement.rollback.run();
      throw error;
    }
  }
}

/**
 * Folds what a previous gateway left that ended before it could, with that gateway's own statements
 * and tables. Throws the engine's error; everything is then still there.
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

/** Returns the SQL of an insert, with one placeholder for each column. */
function insertSql({ table, columns }: InsertStatement): string {
  return `INSERT INTO ${quoted(table)} (${list(columns)}) VALUES (${places(columns.length)})`;
}

/** Returns the SQL that creates or grows a counter row. Parameters are the key, then the sums. */
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
