import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from "kysely";
import { DatabaseError as PostgresError } from "pg";
import { DatabaseError, StorageUnavailableError } from "../storage-error.ts";

/**
 * Thrown when the session was lost. Whether the statement was executed is unknown, unless it was
 * never sent.
 */
export class SessionLostError extends Error {
  override name = "SessionLostError";

  constructor(
    readonly sent: boolean,
    options?: ErrorOptions,
  ) {
    super(
      sent ? "the session was lost before the answer came" : "the session is not open",
      options,
    );
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

/** Matches codes of TLS for a server whose certificate is of an authority that is not known. */
const unknownAuthority =
  /^(?:UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT)$/;

/**
 * Returns the reason of an error, with the way out where it is the server's certificate. Several
 * addresses that refused at once are an aggregate without a message of its own.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join("; ");
  if (!(error instanceof Error)) return String(error);
  return "code" in error && unknownAuthority.test(String(error.code))
    ? `${error.message}; name the certificate of its authority in the URL: ?sslmode=verify-full&sslrootcert=FILE`
    : error.message;
}

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
    ("code" in error && notReached.has(String(error.code))) || lostConnection.test(error.message)
  );
}

/** The messages of `pg` and its pool for a connection that was lost or did not open in time. */
const lostConnection = /timeout|terminated|not queryable|after calling end on the pool/i;

/**
 * SQLSTATEs of a server that serves no query of this kind now, or not to this login, for any
 * query: connections (08), a read-only server, logins (28), a missing database (3D), conflicts and
 * locks (40, 55P03), resources (53), an operator or a time limit (57), and its system (58).
 */
const notServing = /^(08|25006|25P0[34]|28|3D|40001|40P01|53|55P03|57|58)/;

/** Returns the failure of a query as callers of the storage see it. */
function queryErrorOf(error: unknown): unknown {
  const passes = error instanceof PostgresError ? notServing.test(error.code ?? "") : isAway(error);
  if (!passes) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new StorageUnavailableError(message, { cause: error });
}

/**
 * Returns a pool whose queries reject with `StorageUnavailableError` where the server cannot be
 * reached or does not serve now. Errors of a query itself stay as they are.
 */
export function reportingUnavailable(pool: PostgresPool): PostgresPool {
  const clients = new WeakMap<PostgresPoolClient, ReportingClient>();
  return {
    options: pool.options,
    connect: async () => {
      const client = await pool.connect().catch(rethrow);
      let reporting = clients.get(client);
      if (reporting === undefined) {
        reporting = new ReportingClient(client);
        clients.set(client, reporting);
      }
      return reporting;
    },
    end: () => pool.end(),
  };
}

const rethrow = (error: unknown): never => {
  throw queryErrorOf(error);
};

class ReportingClient implements PostgresPoolClient {
  readonly #client: PostgresPoolClient;

  constructor(client: PostgresPoolClient) {
    this.#client = client;
  }

  query<R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  query(): never;
  query<R>(sql = "", parameters: readonly unknown[] = []): Promise<PostgresQueryResult<R>> {
    return this.#client.query<R>(sql, parameters).catch(rethrow);
  }

  release(destroy?: boolean): void {
    this.#client.release(destroy);
  }
}
