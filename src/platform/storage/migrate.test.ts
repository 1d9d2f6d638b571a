import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { freshDatabase } from "../../../test/support/postgres.ts";
import { createTable, tableSql } from "./create-table.ts";
import { openStorage } from "./open-storage.ts";
import { SchemaMismatchError } from "./storage-error.ts";
import type { Migration } from "./storage.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-migrate-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let databaseCount = 0;
const engines: [string, () => Promise<string>][] = [
  ["SQLite", async () => `sqlite:${join(root, `${++databaseCount}.db`)}`],
  ["Postgres", freshDatabase],
];

const table = (name: string): Migration => ({
  name: `migration-${name}`,
  up: (database, kind) =>
    createTable(database, kind, { name, columns: { id: "text primary key" } }),
});
const broken: Migration = {
  name: "migration-c",
  async up(database, kind) {
    await createTable(database, kind, { name: "half", columns: { id: "text primary key" } });
    await sql`insert into nowhere values (1)`.execute(database);
  },
};

/** What the release after those with `migration-a` adds, and the one after that. */
const nextRelease: readonly Migration[] = ["b", "c"].map((name) => ({
  ...table(name),
  name: `migration-${name} additive to migration-a`,
}));
const releaseAfterNext: Migration = {
  ...table("d"),
  name: "migration-d additive to migration-c",
};

interface Schema {
  a: { id: string };
  b: { id: string };
  half: { id: string };
}

describe.each(engines)("migrations on %s", (_, freshUrl) => {
  const open = (url: string, migrations: readonly Migration[], mayMigrate = true) =>
    openStorage<Schema>({
      url,
      migrations,
      mayMigrate,
      durability: "process",
      commitStatements: { inserts: [], adds: [] },
      lockTimeoutMs: 0,
    });

  test("run once each, and later ones when they are added", async () => {
    const url = await freshUrl();
    await (await open(url, [table("a")])).close();
    const storage = await open(url, [table("a"), table("b")]);
    expect(await storage.database.selectFrom("a").selectAll().execute()).toEqual([]);
    expect(await storage.database.selectFrom("b").selectAll().execute()).toEqual([]);
    await storage.close();
  }, 240_000);

  test("run where one that stands before those that were run is added", async () => {
    const url = await freshUrl();
    await (await open(url, [table("a"), table("c")])).close();
    const storage = await open(url, [table("a"), table("b"), table("c")]);
    expect(await storage.database.selectFrom("b").selectAll().execute()).toEqual([]);
    await storage.close();
  }, 240_000);

  test("refuse a database of a newer release and leave it unchanged", async () => {
    const url = await freshUrl();
    await (await open(url, [table("a"), table("b")])).close();
    const error = await open(url, [table("a")]).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SchemaMismatchError);
    expect(String(error)).toContain("written by a newer release (migration-b)");
    await (await open(url, [table("a"), table("b")])).close();
  }, 240_000);

  test("open a database with additive migrations of the next release, and of no later one", async () => {
    const url = await freshUrl();
    const next = [table("a"), ...nextRelease];
    await (await open(url, next)).close();
    await (await open(url, [table("a")])).close();
    await (await open(url, [table("a")], false)).close();
    await (await open(url, [...next, releaseAfterNext])).close();
    await (await open(url, next)).close();
    const error = await open(url, [table("a")]).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SchemaMismatchError);
    expect(String(error)).toContain("written by a newer release (migration-d)");
  }, 240_000);

  test("refuse a database of an older first schema, and say so", async () => {
    const url = await freshUrl();
    await (await open(url, [table("a")])).close();
    const error = await open(url, [table("b")]).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SchemaMismatchError);
    expect(String(error)).toContain("an older first schema (migration-a)");
  }, 240_000);

  test("refuse a database that lacks a migration if the start may not migrate", async () => {
    const url = await freshUrl();
    await (await open(url, [table("a")])).close();
    const error = await open(url, [table("a"), table("b")], false).catch(
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(SchemaMismatchError);
    expect(String(error)).toContain("the database lacks 1 migration of this release");
    await (await open(url, [table("a")], false)).close();
  }, 240_000);

  test("leave nothing behind if one fails", async () => {
    const url = await freshUrl();
    await (await open(url, [table("a")])).close();
    const error = await open(url, [table("a"), table("b"), broken]).catch(
      (reason: unknown) => reason,
    );
    expect(String(error)).toContain("the migration migration-c failed and nothing was changed");
    const storage = await open(url, [table("a")]);
    const names = (await storage.database.introspection.getTables()).map(({ name }) => name);
    expect(names).toContain("a");
    expect(names).not.toContain("b");
    expect(names).not.toContain("half");
    await storage.close();
  }, 240_000);

  test("are refused out of order", async () => {
    const error = await open(await freshUrl(), [table("b"), table("a")]).catch(
      (reason: unknown) => reason,
    );
    expect(String(error)).toContain("migration-a has to come before migration-b");
  }, 240_000);
});

test("tableSql renders one definition for both engines", () => {
  const definition = {
    name: "totals",
    columns: {
      account: "text not null",
      amount: "integer not null default 0",
      share: "real",
      note: "blob",
    },
    constraints: ["primary key (account)"],
  };
  expect(tableSql("sqlite", definition)).toBe(
    'create table "totals" (\n  "account" text not null,\n  "amount" integer not null default 0,\n  "share" real,\n  "note" blob,\n  primary key (account)\n) strict',
  );
  expect(tableSql("postgres", definition)).toBe(
    'create table "totals" (\n  "account" text collate "C" not null,\n  "amount" bigint not null default 0,\n  "share" double precision,\n  "note" bytea,\n  primary key (account)\n)',
  );
  expect(() => tableSql("sqlite", { name: "t", columns: { at: "timestamp" } })).toThrow(
    'column type "timestamp" is not one of',
  );
});
