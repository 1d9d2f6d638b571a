import type { AddStatement, InsertStatement } from "../commit-queue.ts";
import type { CommitStatements } from "../packed-unit.ts";

/** Type of each column, by table and column name. */
export type ColumnTypes = (table: string, column: string) => string;

/** Table that says which batches were committed, for when the answer to a commit is lost. */
export const commitBatchesTable = `create table if not exists commit_batches (
  id text primary key,
  committed_at_ms bigint not null
)`;

const quoted = (name: string): string => `"${name}"`;
const list = (names: readonly string[]): string => names.map(quoted).join(", ");

/**
 * The whole batch as one statement, hence one transaction and one round trip. Parameters: the batch's
 * id, its time, the id of a batch that needs no mark any more, then one JSON array of rows for each
 * insert and each add. https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-MODIFYING
 */
export function commitSql({ inserts, adds }: CommitStatements, typeOf: ColumnTypes): string {
  const parts = [
    ...inserts.map((statement) => insertSql(statement, typeOf)),
    ...adds.map((statement) => addSql(statement, typeOf)),
  ];
  const named = parts.map((part, index) => `part_${index} as (${part(`$${index + 4}`)})`);
  return (
    [
      "with mark as (insert into commit_batches (id, committed_at_ms) values ($1, $2))",
      "forgotten as (delete from commit_batches where id = $3)",
      ...named,
    ].join(",\n") + "\nselect 1"
  );
}

type Part = (parameter: string) => string;

function insertSql({ table, columns }: InsertStatement, typeOf: ColumnTypes): Part {
  return (parameter) => insertRows({ table, columns, typeOf, parameter });
}

function addSql({ table, keyColumns, sumColumns }: AddStatement, typeOf: ColumnTypes): Part {
  const growth = sumColumns
    .map(quoted)
    .map((column) => `${column} = ${quoted(table)}.${column} + excluded.${column}`);
  return (parameter) =>
    `${insertRows({ table, columns: [...keyColumns, ...sumColumns], typeOf, parameter })}` +
    ` on conflict (${list(keyColumns)}) do update set ${growth.join(", ")}`;
}

interface RowsOptions {
  table: string;
  columns: readonly string[];
  typeOf: ColumnTypes;
  parameter: string;
}

function insertRows({ table, columns, typeOf, parameter }: RowsOptions): string {
  const values = columns.map((column, index) => `(r->>${index})::${typeOf(table, column)}`);
  return (
    `insert into ${quoted(table)} (${list(columns)})` +
    ` select ${values.join(", ")} from jsonb_array_elements(${parameter}::jsonb) as r`
  );
}
