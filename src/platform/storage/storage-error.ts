/**
 * The database cannot take the work now (down, full, busy, closing). Nothing of the refused unit
 * was written.
 */
export class StorageUnavailableError extends Error {
  override name = "StorageUnavailableError";
}

/** Another gateway process owns this database. Two of them would each spend the same balance. */
export class StorageInUseError extends Error {
  override name = "StorageInUseError";
}

/**
 * The database was written by a newer release than this one, or has migrations of another program.
 */
export class SchemaMismatchError extends Error {
  override name = "SchemaMismatchError";
}

/**
 * The database refused a statement: a constraint, a type, a wrong name. `code` is the engine's own.
 */
export class DatabaseError extends Error {
  override name = "DatabaseError";

  constructor(
    message: string,
    readonly code: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * SQLITE_CONSTRAINT_UNIQUE and _PRIMARYKEY (sqlite.org/rescode.html), unique_violation (PostgreSQL,
 * appendix A).
 */
const uniqueViolationCodes = new Set([
  "SQLITE_CONSTRAINT_UNIQUE",
  "SQLITE_CONSTRAINT_PRIMARYKEY",
  "23505",
]);

/** Returns whether a write failed because its key already exists, on either engine. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && "code" in error && uniqueViolationCodes.has(String(error.code));
}

/**
 * Returns whether a write would have taken an account below zero (check_violation, raised by a
 * trigger of `ledger_accounts` on Postgres).
 */
export const isOverdrawn = (error: unknown): boolean =>
  error instanceof DatabaseError && error.code === "23514";
