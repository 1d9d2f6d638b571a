import type { PackedUnit, SqlValue } from "./commit-queue.ts";

/** A batch by statement: the rows to insert, and one sum for each distinct counter key. */
export interface MergedUnits {
  /** Rows by the index of their insert statement; an absent index has none. */
  inserts: (readonly SqlValue[])[][];
  /** The growth of counters by the index of their add statement. */
  adds: Map<string, MergedAdd>[];
}

/** The growth of one counter row; a bigint where the sum left the exact range of numbers. */
export interface MergedAdd {
  key: readonly SqlValue[];
  sums: (number | bigint)[];
}

/**
 * Groups a batch by statement and adds up equal counter keys, so that each counter row is written
 * once.
 */
export const mergeUnits = (units: readonly PackedUnit[]): MergedUnits => ({
  inserts: groupInserts(units),
  adds: mergeAdds(units),
});

/** Groups the rows of a batch by the index of their insert statement. */
export function groupInserts(units: readonly PackedUnit[]): MergedUnits["inserts"] {
  const inserts: MergedUnits["inserts"] = [];
  for (const unit of units) {
    const end = insertEnd(unit);
    for (let at = 1; at < end; at += 2)
      (inserts[unit[at] as number] ??= []).push(unit[at + 1] as readonly SqlValue[]);
  }
  return inserts;
}

/** Groups the growth of counters by the index of their add statement, with equal keys added up. */
export function mergeAdds(units: readonly PackedUnit[]): MergedUnits["adds"] {
  const adds: MergedUnits["adds"] = [];
  for (const unit of units) {
    for (let at = insertEnd(unit); at < unit.length; at += 3) {
      mergeAdd(
        (adds[unit[at] as number] ??= new Map()),
        unit[at + 1] as readonly SqlValue[],
        unit[at + 2] as readonly number[],
      );
    }
  }
  return adds;
}

/** Returns where the adds of a unit begin. */
const insertEnd = (unit: PackedUnit): number => 1 + 2 * (unit[0] as number);

/** Adds growth to a total. */
export function addGrowths(total: MergedUnits["adds"], more: MergedUnits["adds"]): void {
  more.forEach((additions, index) => {
    const into = (total[index] ??= new Map());
    for (const [name, added] of additions) {
      const known = into.get(name);
      if (known === undefined) into.set(name, added);
      else addSums(known.sums, added.sums);
    }
  });
}

/** Adds one growth to those of the same sums. */
export function mergeAdd(
  into: Map<string, MergedAdd>,
  key: readonly SqlValue[],
  sums: readonly (number | bigint)[],
): void {
  const name = JSON.stringify(key);
  const known = into.get(name);
  if (known === undefined) into.set(name, { key, sums: [...sums] });
  else addSums(known.sums, sums);
}

function addSums(total: (number | bigint)[], growth: readonly (number | bigint)[]): void {
  for (let column = 0; column < growth.length; column++)
    total[column] = exactSum(total[column] ?? 0, growth[column] ?? 0);
}

function exactSum(total: number | bigint, growth: number | bigint): number | bigint {
  if (typeof total === "number" && typeof growth === "number") {
    const sum = total + growth;
    if (Number.isSafeInteger(sum) || !Number.isInteger(sum)) return sum;
  }
  return BigInt(total) + BigInt(growth);
}
