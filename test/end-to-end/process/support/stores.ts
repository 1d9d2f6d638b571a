import { join } from "node:path";
import { freshDatabase, migratedDatabase } from "../../../support/postgres.ts";
import { temporaryDirectory, type ProcessOptions } from "../../../support/process.ts";
import { queryDatabase } from "./query-database.ts";

/** A database that several gateways use one after the other. */
export interface OpenedStore {
  /** What makes a gateway use it. */
  options: Pick<ProcessOptions, "dataDirectory" | "environment">;
  query(text: string): Promise<Record<string, unknown>[]>;
}

/**
 * The engines that the gateway runs on, each with a way to a database without rows, and to an empty
 * one, for tests of first starts. On SQLite, where migrations cost a tenth of a second, both are
 * empty.
 */
export const stores: readonly {
  name: string;
  open(): Promise<OpenedStore>;
  openEmpty(): Promise<OpenedStore>;
}[] = [
  {
    name: "SQLite",
    open: openSqlite,
    openEmpty: openSqlite,
  },
  {
    name: "Postgres",
    open: async () => openPostgres(await migratedDatabase()),
    openEmpty: async () => openPostgres(await freshDatabase()),
  },
];

async function openSqlite(): Promise<OpenedStore> {
  const dataDirectory = temporaryDirectory();
  return {
    options: { dataDirectory },
    query: (text) => queryDatabase(join(dataDirectory, "switchyard.db"), text),
  };
}

function openPostgres(url: string): OpenedStore {
  const environment = {
    DATABASE_URL: url,
    SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
  };
  return { options: { environment }, query: (text) => queryDatabase(url, text) };
}
