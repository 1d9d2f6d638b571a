import { type Kysely, sql } from "kysely";
import type { StorageKind } from "./storage.ts";

/** Postgres types equivalent to SQLite's: text compares by bytes, integers have 64 bits. */
const postgresTypes: Record<string, string> = {
  text: 'text collate "C"',
  integer: "bigint",
  real: "double precision",
  blob: "bytea",
};

/** A table for both engines. `createTable` translates the column types. */
export interface TableDefinition {
  name: string;
  /**
   * Column definitions that begin with `text`, `integer`, `real` or `blob`, such as `integer not
   * null default 0`.
   */
  columns: Record<string, string>;
  /** Table constraints, such as `primary key (workspace_id, day)`. */
  constraints?: readonly string[];
  /**
   * Whether rows are stored in the order of the primary key, in one tree instead of two. It pays
   * where rows are inserted in that order.
   */
  clustered?: true;
}

/**
 * Creates one table on either engine: STRICT on SQLite, with the corresponding types on Postgres.
 */
export async function createTable(
  database: Kysely<unknown>,
  kind: StorageKind,
  table: TableDefinition,
): Promise<void> {
  await sql.raw(tableSql(kind, table)).execute(database);
}

/** Returns the statement that `createTable` runs. */
export function tableSql(
  kind: StorageKind,
  { name, columns, constraints = [], clustered }: TableDefinition,
): string {
  const lines = Object.entries(columns).map(
    ([column, definition]) => `"${column}" ${columnSql(kind, definition)}`,
  );
  const statement = `create table "${name}" (\n  ${[...lines, ...constraints].join(",\n  ")}\n)`;
  return kind === "sqlite" ? `${statement} strict${clustered ? ", without rowid" : ""}` : statement;
}

function columnSql(kind: StorageKind, definition: string): string {
  const [type = "", ...rest] = definition.trim().split(/\s+/);
  const postgresType = postgresTypes[type.toLowerCase()];
  if (postgresType === undefined) {
    throw new TypeError(
      `column type "${type}" is not one of ${Object.keys(postgresTypes).join(", ")}`,
    );
  }
  return [kind === "sqlite" ? type : postgresType, ...rest].join(" ");
}
