import { type Kysely, sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

const keyColumns = ["workspace_id", "hour", "key_id", "model", "provider"];
const sumColumns = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost_nano",
];
const tryColumns = ["attempts", "failures"];

/**
 * A table of counters, and its values for a row of growth, as expressions over the row's columns.
 */
interface Counter {
  table: string;
  key: Record<string, string>;
  sums: Record<string, string>;
}

const same = (columns: readonly string[]): Record<string, string> =>
  Object.fromEntries(columns.map((column) => [column, column]));
const day = { day: "hour / 24" };

const counters: readonly Counter[] = [
  { table: "usage_hours", key: same(keyColumns), sums: same(sumColumns) },
  {
    table: "usage_days",
    key: { ...same(["workspace_id"]), ...day, ...same(["key_id", "model", "provider"]) },
    sums: same(sumColumns),
  },
  {
    table: "usage_key_days",
    key: { ...same(["workspace_id"]), ...day, ...same(["key_id", "model"]) },
    sums: same(sumColumns),
  },
  {
    table: "network_hours",
    key: same(["hour"]),
    sums: { requests: "requests", tokens: "prompt_tokens + completion_tokens" },
  },
  {
    table: "network_days",
    key: { ...day, ...same(["model", "provider"]) },
    sums: same([...sumColumns, ...tryColumns]),
  },
];

/**
 * Stores one row of growth for each request, in place of one for each of five counters. A fold
 * inserts it into `usage_growths` like into any table of sums, even the fold of a gateway of the
 * previous release. A trigger spreads it to the counters in the same transaction, and leaves
 * nothing there.
 */
export const usageGrowths: Migration = {
  name: "2026-11-25-growths-of-usage additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "usage_growths",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        hour: "integer not null",
        key_id: "text not null",
        model: "text not null",
        provider: "text not null",
        ...Object.fromEntries(
          [...sumColumns, ...tryColumns].map((column) => [column, "integer not null"]),
        ),
      },
      constraints: [`primary key (${keyColumns.join(", ")})`],
    });
    await (kind === "sqlite" ? spreadEachRow(database) : spreadEachStatement(database));
  },
};

/**
 * Spreads rows on SQLite, one by one. https://www.sqlite.org/lang_createtrigger.html#raise: the row
 * is not inserted, and the rest of the statement is kept.
 */
async function spreadEachRow(database: Kysely<unknown>): Promise<void> {
  const spreading = counters.map(({ table, key, sums }) => {
    const values = [...Object.values(key), ...Object.values(sums)].map((expression) =>
      expression.replace(/[a-z_]+/g, "new.$&"),
    );
    return `insert into ${intoSql({ table, key, sums })} values (${values.join(", ")}) ${growSql({ table, key, sums })};`;
  });
  await sql
    .raw(
      `create trigger usage_growths_spread before insert on usage_growths begin
        ${spreading.join("\n        ")}
        select raise(ignore);
      end`,
    )
    .execute(database);
}

/**
 * Spreads rows on Postgres, once for all rows of a fold and after its statement, when the
 * statement's own additions to the same counters are visible.
 * https://www.postgresql.org/docs/current/sql-createtrigger.html
 */
async function spreadEachStatement(database: Kysely<unknown>): Promise<void> {
  const spreading = counters.map(({ table, key, sums }) => {
    const places = Object.keys(key).map((_, index) => index + 1);
    const totals = Object.values(sums).map((expression) => `sum(${expression})::bigint`);
    return (
      `insert into ${intoSql({ table, key, sums })} select ${[...Object.values(key), ...totals].join(", ")}` +
      ` from grown group by ${places.join(", ")} order by ${places.join(", ")} ${growSql({ table, key, sums })};`
    );
  });
  await sql
    .raw(
      `create function spread_usage_growths() returns trigger language plpgsql as $$
      begin
        if not exists (select from grown) then return null; end if;
        ${spreading.join("\n        ")}
        delete from usage_growths;
        return null;
      end $$`,
    )
    .execute(database);
  await sql`create trigger usage_growths_spread after insert on usage_growths
    referencing new table as grown for each statement execute function spread_usage_growths()`.execute(
    database,
  );
}

const intoSql = ({ table, key, sums }: Counter): string =>
  `${table} (${[...Object.keys(key), ...Object.keys(sums)].join(", ")})`;

const growSql = ({ table, key, sums }: Counter): string =>
  `on conflict (${Object.keys(key).join(", ")}) do update set ${Object.keys(sums)
    .map((column) => `${column} = ${table}.${column} + excluded.${column}`)
    .join(", ")}`;
