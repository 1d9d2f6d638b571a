import type {
  AddStatement,
  CommitStatements,
  InsertStatement,
  PackedUnit,
} from "../commit-queue.ts";
import { type GrowthFormat, growthText, rowOf } from "../growths.ts";
import { mergeUnits, type MergedAdd } from "../merge-units.ts";

/** Returns the type of a column, by table and column name. */
export type ColumnTypes = (table: string, column: string) => string;

/** The table of committed batches, which is consulted when the answer to a commit is lost. */
export const commitBatchesTable = `create table if not exists commit_batches (
  id text primary key,
  committed_at_ms bigint not null
)`;

/** The growth of commits that is not folded yet, and the sums of each release that wrote there. */
export const growthTables = [
  "create table if not exists commit_formats (id text primary key, sums text not null)",
  "create table if not exists commit_growths (id text primary key, format text not null, growths jsonb not null)",
];

const quoted = (name: string): string => `"${name}"`;
const list = (names: readonly string[]): string => names.map(quoted).join(", ");

/**
 * Returns the statement that writes a whole batch, in one transaction and one round trip. Its
 * parameters are the batch's id and time; the id of a batch whose mark is no longer needed; whether
 * to commit without waiting for the disk; one JSON array of rows for each insert, and for each sum
 * that the commit itself changes; and JSON with all other growth.
 * https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-MODIFYING
 */
export function commitSql(
  { inserts, adds }: CommitStatements,
  { typeOf, format }: { typeOf: ColumnTypes; format: GrowthFormat },
): string {
  const parts = [
    ...inserts.map((statement) => insertSql(statement, typeOf)),
    ...adds.map((statement) => addSql(statement, typeOf)),
    (parameter: string) =>
      `insert into commit_growths (id, format, growths) select $1, '${format.id}', ${parameter}::jsonb where ${parameter}::jsonb <> '{}'`,
  ];
  const named = parts.map((part, index) => `part_${index} as (${part(`$${index + 5}`)})`);
  return `${[
    "with mark as (insert into commit_batches (id, committed_at_ms) values ($1, $2))",
    "forgotten as (delete from commit_batches where id = $3)",
    ...named,
  ].join(
    ",\n",
  )}\nselect case when $4::boolean then set_config('synchronous_commit', 'off', true) end`;
}

/**
 * Finds the mark of a batch by its id. The statement writes, so that its own commit makes a batch
 * that was committed without waiting for the disk as durable as the session requires.
 * https://www.postgresql.org/docs/current/wal-async-commit.html
 */
export const confirmSql =
  "update commit_batches set committed_at_ms = committed_at_ms where id = $1 returning id";

type Part = (parameter: string) => string;

function insertSql({ table, columns }: InsertStatement, typeOf: ColumnTypes): Part {
  return (parameter) => insertRows({ table, columns, typeOf, parameter });
}

function addSql(statement: AddStatement, typeOf: ColumnTypes): Part {
  const { table, keyColumns, sumColumns } = statement;
  return (parameter) =>
    insertRows({ table, columns: [...keyColumns, ...sumColumns], typeOf, parameter }) +
    onConflict(statement);
}

function onConflict({ table, keyColumns, sumColumns }: AddStatement): string {
  const growth = sumColumns
    .map(quoted)
    .map((column) => `${column} = ${quoted(table)}.${column} + excluded.${column}`);
  return ` on conflict (${list(keyColumns)}) do update set ${growth.join(", ")}`;
}

/**
 * Returns the statement that adds all growths of a format to their sums and deletes them. It
 * returns the formats beside the gateway's own.
 */
export function foldSql(
  { id, adds }: GrowthFormat,
  { typeOf, own }: { typeOf: ColumnTypes; own: string },
): string {
  const parts = adds.map((statement, index) => {
    const { table, keyColumns, sumColumns } = statement;
    const keys = keyColumns.map((column, at) => `(r->>${at})::${typeOf(table, column)}`);
    const sums = sumColumns.map((column, at) => {
      const type = typeOf(table, column);
      return `sum((r->>${keys.length + at})::${type})::${type}`;
    });
    const places = keys.map((_, at) => at + 1).join(", ");
    return (
      `part_${index} as (insert into ${quoted(table)} (${list([...keyColumns, ...sumColumns])})` +
      ` select ${[...keys, ...sums].join(", ")} from gone, jsonb_array_elements(growths->'${index}') as r` +
      ` group by ${places} order by ${places}${onConflict(statement)})`
    );
  });
  return `with ${[
    `gone as (delete from commit_growths where format = '${id}' returning growths)`,
    ...parts,
  ].join(
    ",\n",
  )}\nselect distinct format from commit_growths where format not in ('${id}', '${own}')`;
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

/**
 * Returns the JSON parameters of `commitSql` for a batch: rows in the order of the statements,
 * those of `adds` for the sums that the commit changes itself, and all other growth.
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

/**
 * Returns rows sorted by key, so that two writers of the same counters lock them in the same order.
 */
function addRows(additions: Map<string, MergedAdd> | undefined): readonly unknown[][] {
  if (!additions) return [];
  return [...additions.keys()]
    .sort()
    .map((name) => rowOf(additions.get(name) ?? { key: [], sums: [] }));
}

/**
 * Returns rows as JSON, without NUL and lone surrogates: Postgres text can hold neither, and a
 * client's malformed name must not prevent the charge.
 */
function rowsJson(rows: readonly (readonly unknown[])[]): string {
  const json = JSON.stringify(rows);
  if (!json.includes("\\u0000") && !json.includes("\\ud")) return json;
  return JSON.stringify(rows.map((row) => row.map(storable)));
}

const storable = (value: unknown): unknown =>
  typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value;
