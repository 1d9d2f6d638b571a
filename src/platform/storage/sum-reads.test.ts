import { Glob } from "bun";
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  sql,
} from "kysely";
import { readsSums, sumTablesOf } from "./sum-reads.ts";
import { PostgresSumsDialect } from "./postgres/postgres-sums-dialect.ts";
import { SqliteSumsCompiler } from "./sqlite/sqlite-sums-compiler.ts";

interface Schema {
  entries: { id: string; account: string };
  totals: { account: string; amount: number };
  spread: { account: string; amount: number };
}

const total = { name: "total", table: "totals", keyColumns: ["account"], sumColumns: ["amount"] };
const tables = sumTablesOf([total, { ...total, table: "inbox", spreadsTo: ["spread"] }]);

const pool = {
  options: {},
  connect: () => Promise.reject(new Error("no server")),
  end: async () => undefined,
};
const dialects = {
  SQLite: new SqliteSumsCompiler(tables),
  Postgres: new PostgresSumsDialect({ pool }, tables).createQueryCompiler(),
};

describe.each(Object.entries(dialects))("the compiler of %s", (_, compiler) => {
  const database = new Kysely<Schema>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (each) => new PostgresIntrospector(each),
      createQueryCompiler: () => compiler,
    },
  });
  const raw = (query: ReturnType<typeof sql>): CompiledQuery => query.compile(database);

  test.each<[name: string, query: CompiledQuery]>([
    ["a table of sums", database.selectFrom("totals").selectAll().compile()],
    ["a table that a trigger grows", database.selectFrom("spread").selectAll().compile()],
    [
      "a joined table",
      database
        .selectFrom("entries")
        .innerJoin("totals as sums", "sums.account", "entries.account")
        .select("sums.amount")
        .compile(),
    ],
    [
      "a table in a condition",
      database
        .selectFrom("entries")
        .selectAll()
        .where("account", "in", (from) => from.selectFrom("totals").select("account"))
        .compile(),
    ],
    ["raw SQL", raw(sql`select amount from ${sql.table("totals")}`)],
    [
      "raw SQL that begins with `with`",
      raw(sql`with all_of as (select * from ${sql.table("totals")}) select * from all_of`),
    ],
    ["raw SQL in raw SQL", raw(sql`select 1 ${sql`from ${sql.table("totals")}`}`)],
  ])("marks a query of %s", (_name, query) => {
    expect(readsSums(query.sql)).toBe(true);
  });

  test.each<[name: string, query: CompiledQuery]>([
    ["of other tables", database.selectFrom("entries").selectAll().compile()],
    [
      "with the name of sums as a value",
      database.selectFrom("entries").selectAll().where("id", "in", ["totals", "x"]).compile(),
    ],
    ["that changes sums", database.deleteFrom("totals").compile()],
  ])("does not mark a query %s", (_name, query) => {
    expect(readsSums(query.sql)).toBe(false);
  });
});

/** Checks read the growth of commits themselves, on a connection of their own. */
const checks = ["billing/ledger/ledger-check.ts", "insights/usage/usage-rollup.ts"];

test("raw SQL of the gateway names its tables of sums with sql.table", async () => {
  const source = join(import.meta.dir, "..", "..");
  const files = [...new Glob("**/*.ts").scanSync(source)].filter(
    (path) => !path.includes("/migrations/") && !path.endsWith(".test.ts"),
  );
  const texts = new Map(files.map((path) => [path, readFileSync(join(source, path), "utf8")]));
  const names = new Set(
    [...texts.values()].flatMap((text) =>
      [...text.matchAll(/: AddStatement = \{[^}]*?table: "(\w+)"/g)].map((match) => match[1]),
    ),
  );
  for (const name of ["usage_hours", "usage_days", "usage_key_days", "network_hours"])
    names.add(name);
  expect(names.size).toBeGreaterThan(8);
  const reading = new RegExp(`\\b(?:from|join) (?:${[...names].join("|")})\\b`);
  const found = [...texts].filter(([, text]) => reading.test(text)).map(([path]) => path);
  expect(found.filter((path) => !checks.includes(path))).toEqual([]);
});
