import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { Client } from "pg";
import { checkLedger } from "./account/ledger/ledger-check.ts";
import { checkAuditLog, type Query } from "./account/security/audit-check.ts";
import { loadEncryptionKey } from "./platform/config/encryption-key.ts";
import { loadConfiguration } from "./platform/config/load-configuration.ts";
import { withSecretFiles } from "./platform/config/secret-files.ts";

/** A database that is only read, at one moment, beside gateways that write. */
interface OpenedForReading {
  query: Query;
  close(): Promise<void>;
}

function openSqlite(path: string): OpenedForReading {
  if (!existsSync(path)) throw new Error(`there is no database at ${path}`);
  const database = new Database(path, { readonly: true });
  database.run("begin");
  return { query: async (text) => database.query<Record<string, unknown>, []>(text).all(), close: async () => database.close() };
}

async function openPostgres(connectionString: string): Promise<OpenedForReading> {
  const client = new Client({ connectionString });
  await client.connect();
  await client.query("begin isolation level repeatable read read only");
  return { query: async (text) => (await client.query<Record<string, unknown>>(text)).rows, close: () => client.end() };
}

/** Checks the books and the audit log of the configured database; gives what is wrong. */
async function examine(): Promise<string[]> {
  const { storage, encryptionKey: configured, dataDirectory } = await loadConfiguration({
    environment: withSecretFiles(process.env), workingDirectory: process.cwd(),
    providerSchema: async () => (await import("./inference/catalog/configured-provider.ts")).configuredProviderSchema,
  });
  const { embedded } = storage;
  const opened = embedded ? openSqlite(storage.url.slice("sqlite:".length)) : await openPostgres(storage.url);
  try {
    const key = loadEncryptionKey({ configured, dataDirectory, embedded, databaseExists: true });
    return [...await checkLedger(opened.query), ...await checkAuditLog(opened.query, key)];
  } finally {
    await opened.close();
  }
}

try {
  const problems = await examine();
  for (const problem of problems) console.error(problem);
  console.log(problems.length === 0 ? "the ledger adds up, and the audit log is whole" : `${problems.length} problems were found`);
  process.exit(problems.length === 0 ? 0 : 1);
} catch (error) {
  console.error(`the database could not be checked: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(2);
}
