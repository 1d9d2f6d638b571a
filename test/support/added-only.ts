import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import type { StorageKind, Migration } from "../../src/platform/storage/storage.ts";

/** Returns the statements of a migration without running them. */
async function statementsOf({ up }: Pick<Migration, "up">, kind: StorageKind): Promise<string[]> {
  const statements: string[] = [];
  const isSqlite = kind === "sqlite";
  const database = new Kysely<unknown>({
    dialect: {
      createDriver: () => new DummyDriver(),
      createAdapter: () => (isSqlite ? new SqliteAdapter() : new PostgresAdapter()),
      createIntrospector: (db) =>
        isSqlite ? new SqliteIntrospector(db) : new PostgresIntrospector(db),
      createQueryCompiler: () =>
        isSqlite ? new SqliteQueryCompiler() : new PostgresQueryCompiler(),
    },
    log: ({ query }) =>
      void statements.push(...(hasBody.test(query.sql) ? [query.sql] : query.sql.split(";"))),
  });
  await up(database, kind);
  return statements.map((text) => text.replace(/\s+/g, " ").trim()).filter((text) => text !== "");
}

const hasBody = /^\s*create (trigger|function)\b/i;
const table = /^create (?:unlogged )?table (?:if not exists )?"?(\w+)"? ?\(/i;
const index = /^create (unique )?index (?:if not exists )?"?\w+"? on "?(\w+)"?/i;
const column = /^alter table "?(\w+)"? add column "?\w+"? (.*)$/i;
const trigger = /^create trigger "?\w+"? (?:before|after|instead of) [a-z ]+ on "?(\w+)"?/i;
const constraint = /\b(check|references|unique|primary key|generated|constraint)\b|, (add|drop) /i;

/**
 * Returns the statements of a migration that the previous release cannot work beside (decision
 * 0118). Harmless are new tables, indexes and functions, and columns with a default or without `not
 * null`. A table that the migration itself creates may be shaped and filled in any way, though rows
 * inserted there may grow other tables by a trigger.
 */
export async function moreThanAdded(
  migration: Pick<Migration, "up">,
  kind: StorageKind,
): Promise<string[]> {
  const own = new Set<string | undefined>();
  return (await statementsOf(migration, kind)).filter((statement) => {
    const [, made] = table.exec(statement) ?? [];
    if (made !== undefined) return void own.add(made);
    const [, isUnique, indexed] = index.exec(statement) ?? [];
    if (indexed !== undefined) return isUnique !== undefined && !own.has(indexed);
    const [, , definition] = column.exec(statement) ?? [];
    if (definition !== undefined)
      return (
        constraint.test(definition) ||
        (/\bnot null\b/i.test(definition) && !/\bdefault (?!null\b)/i.test(definition))
      );
    if (/^create function\b/i.test(statement)) return false;
    const [, watched] = trigger.exec(statement) ?? [];
    if (watched !== undefined) return !own.has(watched);
    const [, filled] = /^insert into "?(\w+)"?/i.exec(statement) ?? [];
    return !own.has(filled);
  });
}
