import { Database } from "bun:sqlite";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { checkClosedMonths } from "../billing/ledger/closed/closed-check.ts";
import { checkLedger } from "../billing/ledger/ledger-check.ts";
import { checkUsage } from "../insights/usage/usage-rollup.ts";
import { checkAuditLog, otherKeyFinding, type Query } from "../access/audit/audit-chain.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
import { buildStorage } from "../app/parts/build-storage.ts";
import { createLogger } from "../platform/telemetry/logger.ts";
import { CommandError } from "./terminal.ts";

/** A database opened for reading, as of one moment, beside gateways that write. */
export interface OpenedForReading {
  query: Query;
  close(): Promise<void>;
}

/** Opens a SQLite database for reading. */
export function openSqlite(path: string): OpenedForReading {
  if (!existsSync(path)) throw new CommandError(`there is no database at ${path}`, 2);
  const database = new Database(path, { readonly: true });
  database.run("begin");
  return {
    query: async (text) => database.query<Record<string, unknown>, []>(text).all(),
    close: async () => database.close(),
  };
}

/** Opens a Postgres database for reading. */
export async function openPostgres(connectionString: string): Promise<OpenedForReading> {
  const client = new Client({ connectionString });
  await client.connect();
  await client.query("begin isolation level repeatable read read only");
  return {
    query: async (text) => (await client.query<Record<string, unknown>>(text)).rows,
    close: () => client.end(),
  };
}

/** Returns the migrations that a database lacks, and those that this release does not know. */
export async function compareSchema(
  query: Query,
): Promise<{ missing: string[]; unknown: string[] }> {
  const done = (await query("select name from kysely_migration")).map(({ name }) => String(name));
  const known = migrations.map(({ name }) => name);
  return {
    missing: known.filter((name) => !done.includes(name)),
    unknown: done.filter((name) => !known.includes(name)),
  };
}

/**
 * Returns what is wrong with the ledger, the sums derived from it, and the audit log. With another
 * encryption key, what only its hashes prove is left out.
 */
export async function checkBooks(query: Query, encryptionKey: Uint8Array): Promise<string[]> {
  const audit = await checkAuditLog(query, encryptionKey);
  return [
    ...(await checkLedger(query)),
    ...(audit.includes(otherKeyFinding) ? [] : await checkClosedMonths(query, encryptionKey)),
    ...(await checkUsage(query)),
    ...audit,
  ];
}

/** Returns what SQLite finds wrong with the pages and indexes of its file. */
export const checkPages = async (query: Query): Promise<string[]> =>
  (await query("pragma quick_check(5)"))
    .map((row) => String(Object.values(row)[0]))
    .filter((text) => text !== "ok");

/** Tables with their columns, and indexes, by their names. */
type Parts = ReadonlySet<string>;

const sqliteParts = `
  select 'column ' || m.name || '.' || c.name as part
    from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' and m.name not like 'sqlite_%'
  union all
  select 'index ' || name from sqlite_master where type = 'index' and name not like 'sqlite_%'`;

const postgresParts = `
  select 'column ' || table_name || '.' || column_name as part
    from information_schema.columns where table_schema = current_schema()
  union all
  select 'index ' || indexname from pg_indexes where schemaname = current_schema()`;

/** Indexes have other names on Postgres, and its full-text search needs no tables of its own. */
const ofSqliteAlone = /^index |^column search_/;

const partsOf = async (query: Query, sql: string): Promise<Parts> =>
  new Set((await query(sql)).map(({ part }) => String(part)));

/**
 * Returns the tables, columns and indexes that the migrations make and a SQLite database lacks, or
 * the columns that a Postgres database lacks, whose indexes have names of their own.
 */
export async function missingParts(query: Query, isPostgres: boolean): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-schema-"));
  const path = join(directory, "expected.db");
  try {
    const settings = {
      storageUrl: `sqlite:${path}`,
      durability: "process",
      sharedUrl: undefined,
    } as const;
    await (await buildStorage(settings, createLogger({ level: "silent" }))).close();
    const expected = openSqlite(path);
    const wanted = await partsOf(expected.query, sqliteParts);
    await expected.close();
    const present = await partsOf(query, isPostgres ? postgresParts : sqliteParts);
    return [...wanted].filter(
      (part) => !present.has(part) && !(isPostgres && ofSqliteAlone.test(part)),
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
