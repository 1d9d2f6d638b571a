import { assert } from "../kernel/assert.ts";

/** A value that both databases can bind; money and counts stay within 2^53. */
export type SqlValue = string | number | null;

/** A named insert, written once by the store that owns the table. */
export interface InsertStatement {
  /** Unique name of the statement, such as `transfer`. */
  name: string;
  table: string;
  columns: readonly string[];
}

/** An insert, and how a record fills its columns. */
interface RecordInsert<Source> {
  statement: InsertStatement;
  rowOf(source: Source): CommitUnit["inserts"][number];
}

/**
 * Declares an insert by its columns, each beside the value that it takes of a record; `Row` is the
 * table's row, whose columns have to be all there.
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
 * A named table of sums: rows found by `keyColumns`, whose `sumColumns` grow. Missing rows start at
 * zero. A commit only appends what it makes grow; it is folded into the sums in the background, and
 * before a query reads them.
 */
export interface AddStatement {
  name: string;
  table: string;
  keyColumns: readonly string[];
  sumColumns: readonly string[];
  /**
   * Tables of sums that grow in its place: a trigger of the database spreads its rows to them when
   * they are folded, and keeps none.
   */
  spreadsTo?: readonly string[];
  /**
   * Where several gateways share the database, it guards these sums: they grow in the commit
   * itself, so that it can refuse the commit.
   */
  guarded?: true;
}

/** What one settlement writes; everything in a unit is committed together or not at all. */
export interface CommitUnit {
  inserts: readonly { statement: InsertStatement; values: readonly SqlValue[] }[];
  adds: readonly { statement: AddStatement; key: readonly SqlValue[]; sums: readonly number[] }[];
}

/** What the caller passes to the queue beside a unit. */
export interface CommitOptions {
  /**
   * Others are under way whose units may follow at once: the group is held open while turns of the
   * event loop bring more.
   */
  moreMayFollow?: boolean;
}

/**
 * Writes units in groups, off the event loop. The promise of `commit` settles when the unit is
 * durable (as `storage.durability` says); it rejects when the database refused, and then nothing of
 * the unit stands. A unit that was under way when the database was lost stays pending until the
 * database tells what became of it.
 */
export interface CommitQueue {
  commit(unit: CommitUnit, options?: CommitOptions): Promise<void>;
  /**
   * Resolves when everything accepted so far is durable; rejects with `StorageUnavailableError`
   * where the database answers nothing.
   */
  flush(): Promise<void>;
  /** Units accepted and not yet durable. */
  readonly pendingCount: number;
  /** Units that were refused since the start. */
  readonly rejectedCount: number;
  /**
   * Whether the database has stopped taking commits: the oldest unit waits for over a second, or
   * the last commit or test write was refused.
   */
  readonly stalled: boolean;
  /**
   * Whether a request may be begun whose charge has to be committed; after an outage one a second,
   * until a unit stands.
   */
  admits(): boolean;
}

/**
 * Every statement that units may carry, known before the first unit so that a wrong column fails
 * the start.
 */
export interface CommitStatements {
  inserts: readonly InsertStatement[];
  adds: readonly AddStatement[];
}

/**
 * A unit as it travels to the writer: the number of inserts, then `statementIndex, values` for each
 * insert, then `statementIndex, key, sums` for each add. One flat array costs the main thread
 * least.
 */
export type PackedUnit = readonly (number | readonly SqlValue[])[];

/** Turns units into their packed form, or throws when one does not fit the statements. */
export type UnitPacker = (unit: CommitUnit) => PackedUnit;

/** Builds the packer for a set of statements; their names have to be unique. */
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
 * JSON would turn NaN and infinities into null and round large integers: refused here, where the
 * unit is known.
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
 * A null is distinct from every other null in a unique index, so a counter under it would never add
 * up.
 */
function requireKey(name: string, key: readonly SqlValue[], expectedCount: number): void {
  requireValues(name, key, expectedCount);
  if (key.includes(null))
    throw new TypeError(`commit statement "${name}" cannot add under a null key`);
}
