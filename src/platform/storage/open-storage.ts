import { systemClock } from "../kernel/clock.ts";
import { openSqlite } from "./sqlite/open-sqlite.ts";
import type { Storage, StorageLogger, StorageOptions } from "./storage.ts";

const silentLogger: StorageLogger = { info: () => {}, warn: () => {}, error: () => {} };

/**
 * Opens the gateway's database, migrates its schema and takes the lock that makes this the only
 * gateway on it. Throws `StorageInUseError`, `SchemaMismatchError` or the engine's error.
 */
export async function openStorage<Schema>(options: StorageOptions): Promise<Storage<Schema>> {
  const embedded = options.url.startsWith("sqlite:");
  const complete = {
    lockTimeoutMs: embedded ? 2_000 : 10_000,
    commitTimeoutMs: 5_000,
    severalGateways: false,
    waitMs: 0,
    poolSize: 10,
    mayMigrate: true,
    clock: systemClock,
    logger: silentLogger,
    ...options,
  };
  if (embedded) return openSqlite<Schema>(complete);
  const { openPostgres } = await import("./postgres/open-postgres.ts");
  return openPostgres<Schema>(complete);
}
