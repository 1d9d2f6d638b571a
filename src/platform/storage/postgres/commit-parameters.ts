import { mergeUnits, type MergedAdd } from "../merge-units.ts";
import type { CommitStatements, PackedUnit } from "../packed-unit.ts";

/** The JSON arrays of rows that `commitSql` takes for a batch, in the order of the statements. */
export function commitParameters(
  { inserts, adds }: CommitStatements,
  units: readonly PackedUnit[],
): string[] {
  const merged = mergeUnits(units);
  return [
    ...inserts.map((_, index) => rowsJson(merged.inserts[index] ?? [])),
    ...adds.map((_, index) => rowsJson(addRows(merged.adds[index]))),
  ];
}

/** Ordered by key, so that two writers of the same counters lock them in the same order. */
function addRows(additions: Map<string, MergedAdd> | undefined): readonly unknown[][] {
  if (!additions) return [];
  return [...additions.keys()].sort().map((name) => {
    const { key = [], sums = [] } = additions.get(name) ?? {};
    return [...key, ...sums.map((sum) => (typeof sum === "bigint" ? sum.toString() : sum))];
  });
}

/** Postgres text can hold neither NUL nor half a surrogate pair; a client's strange name may not cost the charge. */
function rowsJson(rows: readonly (readonly unknown[])[]): string {
  const json = JSON.stringify(rows);
  if (!json.includes("\\u0000") && !json.includes("\\ud")) return json;
  return JSON.stringify(rows.map((row) => row.map(storable)));
}

const storable = (value: unknown): unknown =>
  typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value;
