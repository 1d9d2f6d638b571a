import type { SqlValue } from "./commit-queue.ts";
import type { PackedUnit } from "./packed-unit.ts";

/** A batch by statement: what has to be inserted, and one sum per distinct counter key. */
export interface MergedUnits {
  /** Rows by the index of their insert statement; an absent index has none. */
  inserts: (readonly SqlValue[])[][];
  /** Counter growth by the index of its add statement. */
  adds: Map<string, MergedAdd>[];
}

/** The growth of one counter row; a bigint where the sum left the exact range of numbers. */
export interface MergedAdd {
  key: readonly SqlValue[];
  sums: (number | bigint)[];
}

/** Groups a batch by statement and adds up equal counter keys, so that each counter row is written once. */
export function mergeUnits(units: readonly PackedUnit[]): MergedUnits {
  const merged: MergedUnits = { inserts: [], adds: [] };
  for (const unit of units) {
    const insertEnd = 1 + 2 * (unit[0] as number);
    for (let at = 1; at < insertEnd; at += 2) {
      (merged.inserts[unit[at] as number] ??= []).push(unit[at + 1] as readonly SqlValue[]);
    }
    for (let at = insertEnd; at < unit.length; at += 3) {
      const statement = (merged.adds[unit[at] as number] ??= new Map());
      const key = unit[at + 1] as readonly SqlValue[];
      mergeAdd(statement, { name: JSON.stringify(key), key, sums: unit[at + 2] as readonly number[] });
    }
  }
  return merged;
}

/** Adds growth to what is known of its counter row, found by its key as JSON. */
export function mergeAdd(
  into: Map<string, MergedAdd>,
  { name, key, sums }: { name: string; key: readonly SqlValue[]; sums: readonly (number | bigint)[] },
): void {
  const known = into.get(name);
  if (!known) {
    into.set(name, { key, sums: [...sums] });
    return;
  }
  for (let column = 0; column < sums.length; column++) {
    known.sums[column] = exactSum(known.sums[column] ?? 0, sums[column] ?? 0);
  }
}

function exactSum(total: number | bigint, growth: number | bigint): number | bigint {
  if (typeof total === "number" && typeof growth === "number") {
    const sum = total + growth;
    if (Number.isSafeInteger(sum) || !Number.isInteger(sum)) return sum;
  }
  return BigInt(total) + BigInt(growth);
}
