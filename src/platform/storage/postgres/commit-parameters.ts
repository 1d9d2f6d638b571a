import type { AddStatement, CommitStatements, PackedUnit } from "../commit-queue.ts";
import { growthText, rowOf } from "../growths.ts";
import { mergeUnits, type MergedAdd } from "../merge-units.ts";

/**
 * The JSON that `commitSql` takes for a batch: rows in the order of the statements, those of `adds`
 * for the sums that the commit changes itself, and what it makes grow beside them.
 */
export function commitParameters(
  { inserts, adds }: CommitStatements,
  { units, isGuarded }: { units: readonly PackedUnit[]; isGuarded(add: AddStatement): boolean },
): string[] {
  const merged = mergeUnits(units);
  const guarded = adds.flatMap((add, index) => (isGuarded(add) ? [index] : []));
  return [
    ...inserts.map((_, index) => rowsJson(merged.inserts[index] ?? [])),
    ...guarded.map((index) => rowsJson(addRows(merged.adds[index]))),
    growthText(
      merged.adds.map((sums, index) => (guarded.includes(index) ? new Map() : sums)),
      rowsJson,
    ),
  ];
}

/** Ordered by key, so that two writers of the same counters lock them in the same order. */
function addRows(additions: Map<string, MergedAdd> | undefined): readonly unknown[][] {
  if (!additions) return [];
  return [...additions.keys()]
    .sort()
    .map((name) => rowOf(additions.get(name) ?? { key: [], sums: [] }));
}

/**
 * Postgres text can hold neither NUL nor half a surrogate pair; a client's strange name may not
 * cost the charge.
 */
function rowsJson(rows: readonly (readonly unknown[])[]): string {
  const json = JSON.stringify(rows);
  if (!json.includes("\\u0000") && !json.includes("\\ud")) return json;
  return JSON.stringify(rows.map((row) => row.map(storable)));
}

const storable = (value: unknown): unknown =>
  typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value;
