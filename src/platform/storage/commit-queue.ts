import { assert } from "../kernel/assert.ts";

/** A value that both databases can bind. Money and counts stay within 2^53. */
export type SqlValue = string | number | null;

/** A named insert, defined once by the store that owns the table. */
export interface InsertStatement {
  /** The unique name of the statement, such as `transfer`. */
  name: string;
  table: string;
  columns: readonly string[];
}

/** An insert, and the function that fills its columns from a record. */
interface RecordInsert<Source> {
  statement: InsertStatement;
  rowOf(source: Source): CommitUnit["inserts"][number];
}

/**
 * Declares an insert by its columns, each with the function that reads its value from a record.
 * `Row` is the table's row type, whose columns must all be present.
 */
export function recordInsert<Row, Source>({
  name,
  table,
  columns,
}: {
  name: string;
  table: string;
  columns: Record<keyof Row & string, (source: Source) => SqlValue>;
}): RecordInsert<Source> {
  const readers = Object.values<(source: Source) => SqlValue>(columns);
  const statement = { name, table, columns: Object.keys(columns) };
  return {
    statement,
    rowOf: (source) => ({ statement, values: readers.map((read) => read(source)) }),
  };
}

/**
 * A named table of sums: rows are found by `keyColumns`, and their `sumColumns` grow. Missing rows
 * start at zero. A commit only appends the growth, which is folded into the sums in the background,
 * and before a query reads them.
 */
export interface AddStatement {
  name: string;
  table: string;
  keyColumns: readonly string[];
  sumColumns: readonly string[];
  /**
   * Tables of sums that grow in its place: a database trigger spreads its rows to them during a
   * fold, and keeps none.
   */
  spreadsTo?: readonly string[];
  /**
   * Whether the sums grow in the commit itself, where several gateways share the database, so that
   * the database can refuse the commit.
   */
  guarded?: true;
}

/**
 * The rows that one settlement writes. Everything in a unit is committed together or not at all.
 */
export interface CommitUnit {
  inserts: readonly { statement: InsertStatement; values: readonly SqlValue[] }[];
  adds: readonly { statement: AddStatement; key: readonly SqlValue[]; sums: readonly number[] }[];
}

/** Options that the caller passes to the queue beside a unit. */
export interface CommitOptions {
  /**
   * Whether other requests are in progress whose units may follow at once. The group is then held
   * open while turns of the event loop bring more; with false, it is sent at once.
   */
  moreMayFollow?: boolean;
}

/**
 * Writes units in groups, off the event loop. The promise of `commit` resolves when the unit is
 * durable (as `storage.durability` says). It rejects when the database refused the unit, and then
 * nothing of it was written. A unit that was in flight when the database was lost stays pending
 * until its outcome is known.
 */
export interface CommitQueue {
  commit(unit: CommitUnit, options?: CommitOptions): Promise<void>;
  /**
   * Resolves when everything accepted so far is durable. Rejects with `StorageUnavailableError`
   * where the database does not answer.
   */
  flush(): Promise<void>;
  /** The number of units that were accepted and are not durable yet. */
  readonly pendingCount: number;
  /** The number of units that were refused since the start. */
  readonly rejectedCount: number;
  /**
   * Whether the database has stopped taking commits: the oldest unit has waited for over a second,
   * or the last commit or test write was refused.
   */
  readonly stalled: boolean;
  /**
   * Returns whether a request may begin whose charge has to be committed. After an outage one
   * request per second may, until a unit was committed.
   */
  admits(): boolean;
}

/**
 * Every statement that units may contain. They are known before the first unit, so that a wrong
 * column fails the start.
 */
export interface CommitStatements {
  inserts: readonly InsertStatement[];
  adds: readonly AddStatement[];
}

/**
 * A unit in the form that is sent to the writer: the number of inserts, then `statementIndex,
 * values` for each insert, then `statementIndex, key, sums` for each add. One flat array costs the
 * main thread least.
 */
export type PackedUnit = readonly (number | readonly SqlValue[])[];

/** Packs a unit, or throws where it does not fit the statements. */
export type UnitPacker = (unit: CommitUnit) => PackedUnit;

/** Creates the packer for a set of statements, whose names have to be unique. */
export function createUnitPacker(statements: CommitStatements): UnitPacker {
  const inserts = indexByName(statements.inserts);
  const adds = indexByName(statements.adds);
  return (unit) => {
    const packed: (number | readonly SqlValue[])[] = [unit.inserts.length];
    for (const { statement, values } of unit.inserts) {
      const index = indexOf(inserts, statement.name);
      requireValues(statement.name, values, statement.columns.length);
      packed.push(index, values);
    }
    for (const { statement, key, sums } of unit.adds) {
      const index = indexOf(adds, statement.name);
      requireKey(statement.name, key, statement.keyColumns.length);
      requireValues(statement.name, sums, statement.sumColumns.length);
      packed.push(index, key, sums);
    }
    return packed;
  };
}

function indexByName(statements: readonly { name: string }[]): Map<string, number> {
  const byName = new Map(statements.map(({ name }, index) => [name, index]));
  assert(byName.size === statements.length, "two commit statements have the same name");
  return byName;
}

function indexOf(byName: Map<string, number>, name: string): number {
  const index = byName.get(name);
  if (index === undefined)
    throw new TypeError(`commit statement "${name}" was not declared when the storage was opened`);
  return index;
}

/**
 * Throws for values that JSON would change: NaN and infinities become null, and large integers are
 * rounded. They are refused here, where the unit is known.
 */
function requireValues(name: string, values: readonly SqlValue[], expectedCount: number): void {
  if (values.length !== expectedCount) {
    throw new TypeError(
      `commit statement "${name}" takes ${expectedCount} values, got ${values.length}`,
    );
  }
  for (const value of values) {
    if (typeof value === "string" || value === null) continue;
    if (
      typeof value === "number" &&
      value <= Number.MAX_SAFE_INTEGER &&
      value >= -Number.MAX_SAFE_INTEGER
    )
      continue;
    const expected = "values are text, null or numbers within 2^53";
    throw new TypeError(`commit statement "${name}" cannot bind ${String(value)}: ${expected}`);
  }
}

/**
 * Throws for a null in a key: in a unique index each null is distinct, so a counter under it would
 * never add up.
 */
function requireKey(name: string, key: readonly SqlValue[], expectedCount: number): void {
  requireValues(name, key, expectedCount);
  if (key.includes(null))
    throw new TypeError(`commit statement "${name}" cannot add under a null key`);
}
