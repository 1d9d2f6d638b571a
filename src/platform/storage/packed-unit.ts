import { assert } from "../kernel/assert.ts";
import type { AddStatement, CommitUnit, InsertStatement, SqlValue } from "./commit-queue.ts";

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
