import { Database } from "bun:sqlite";
import { databaseInUseCode, type OpenRequest } from "./worker-protocol.ts";

/**
 * Opens a connection with exact integers. WAL lets the reader run beside the writer; the journal is
 * truncated to 64 MB after a burst. https://sqlite.org/wal.html
 */
export function openConnection({ path, role, synchronous }: OpenRequest): Database {
  const options = { safeIntegers: true, strict: true };
  const database = new Database(
    path,
    role === "reader" ? { ...options, readonly: true } : { ...options, create: true },
  );
  database.run("PRAGMA busy_timeout = 5000");
  if (role === "writer") {
    // Takes effect only in a new file, before anything is in it.
    database.run("PRAGMA auto_vacuum = INCREMENTAL");
    database.run("PRAGMA journal_mode = WAL");
    database.run(`PRAGMA synchronous = ${synchronous}`);
    database.run("PRAGMA journal_size_limit = 67108864");
    database.run("PRAGMA wal_autocheckpoint = 1000");
  }
  database.run("PRAGMA foreign_keys = ON");
  database.run("PRAGMA temp_store = MEMORY");
  return database;
}

/**
 * Takes the lock of the one gateway on a database: an exclusive transaction on an empty file beside
 * it, whose operating-system lock ends with the process, in any way that it ends.
 */
export function takeProcessLock(path: string, timeoutMs: number): Database {
  const lock = new Database(`${path}.lock`, { create: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${timeoutMs}`);
    lock.run("PRAGMA locking_mode = EXCLUSIVE");
    lock.run("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    const busy =
      error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");
    if (!busy) throw error;
    throw Object.assign(new Error("another process holds the lock"), { code: databaseInUseCode });
  }
}
