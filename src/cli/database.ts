import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { Client } from "pg";
import { checkClosedMonths } from "../billing/ledger/closed/closed-check.ts";
import { checkLedger } from "../billing/ledger/ledger-check.ts";
import { checkUsage } from "../insights/usage-rollup.ts";
import { checkAuditLog, type Query } from "../access/audit-chain.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
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

/** Returns what is wrong with the ledger, the sums derived from it, and the audit log. */
export const checkBooks = async (query: Query, encryptionKey: Uint8Array): Promise<string[]> => [
  ...(await checkLedger(query)),
  ...(await checkClosedMonths(query, encryptionKey)),
  ...(await checkUsage(query)),
  ...(await checkAuditLog(query, encryptionKey)),
];
