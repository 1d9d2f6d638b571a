import { DatabaseError as PostgresError } from "pg";
import { DatabaseError, StorageUnavailableError } from "../storage-error.ts";

/**
 * Thrown when the session was lost. Whether the statement was executed is unknown, unless it was
 * never sent.
 */
export class SessionLostError extends Error {
  override name = "SessionLostError";
  readonly sent: boolean;

  constructor(sent: boolean, options?: ErrorOptions) {
    super(
      sent ? "the session was lost before the answer came" : "the session is not open",
      options,
    );
    this.sent = sent;
  }
}

/**
 * Matches SQLSTATE classes and codes:
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const sessionEnded = /^(08|57P|25P03|25P04)/;
const passing = /^(40001|40P01|55P03|57014)/;
/**
 * Includes class 42 (permissions, tables, columns): the statement of a batch is the same for every
 * unit.
 */
const unavailable = /^(25006|3F|42|53|58|XX)/;

/** The consequence of a failed statement for the work that it was part of. */
export type FailureKind = "session-lost" | "passing" | "unavailable" | "refused";

/** Classifies errors of `pg`. Any error without an SQLSTATE comes from the connection. */
export function failureKindOf(error: unknown): FailureKind {
  if (!(error instanceof PostgresError) || error.code === undefined) return "session-lost";
  if (sessionEnded.test(error.code)) return "session-lost";
  if (passing.test(error.code)) return "passing";
  return unavailable.test(error.code) ? "unavailable" : "refused";
}

/** Returns the refusal of one unit, as callers of the storage see it. */
export function storageErrorOf(error: unknown): Error {
  if (!(error instanceof Error)) return new StorageUnavailableError(String(error));
  if (!(error instanceof PostgresError)) return error;
  return failureKindOf(error) === "refused"
    ? new DatabaseError(error.message, error.code ?? "", { cause: error })
    : new StorageUnavailableError(error.message, { cause: error });
}

/**
 * Returns whether every unit would meet the same error, so that trying them separately is useless.
 */
export const isDatabaseWide = (error: unknown): boolean =>
  error instanceof StorageUnavailableError ||
  (error instanceof PostgresError && failureKindOf(error) !== "refused");

/** System error codes for a server, name or network that cannot be reached. */
const notReached = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "EPIPE",
  "ENOENT",
]);

/**
 * Returns whether a server could not be reached, or reports that it is starting (57P03) or has no
 * connection left (53300).
 */
export function isAway(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isAway);
  if (error instanceof PostgresError) return error.code === "57P03" || error.code === "53300";
  if (!(error instanceof Error)) return false;
  return (
    ("code" in error && notReached.has(String(error.code))) ||
    /timeout|terminated/i.test(error.message)
  );
}
