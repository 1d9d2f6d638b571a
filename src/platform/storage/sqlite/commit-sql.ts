import type { AddStatement, InsertStatement } from "../commit-queue.ts";

const quoted = (name: string): string => `"${name}"`;
const list = (names: readonly string[]): string => names.map(quoted).join(", ");
const places = (count: number): string => Array.from({ length: count }, () => "?").join(", ");

/** SQL of an insert, one place a column. */
export function insertSql({ table, columns }: InsertStatement): string {
  return `INSERT INTO ${quoted(table)} (${list(columns)}) VALUES (${places(columns.length)})`;
}

/** SQL that makes a counter row or grows it; parameters are the key, then the sums. */
export function addSql({ table, keyColumns, sumColumns }: AddStatement): string {
  const columns = [...keyColumns, ...sumColumns];
  const growth = sumColumns.map(
    (column) => `${quoted(column)} = ${quoted(column)} + excluded.${quoted(column)}`,
  );
  return (
    `INSERT INTO ${quoted(table)} (${list(columns)}) VALUES (${places(columns.length)})` +
    ` ON CONFLICT (${list(keyColumns)}) DO UPDATE SET ${growth.join(", ")}`
  );
}
