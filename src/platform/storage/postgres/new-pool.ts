import { Pool, type PoolConfig } from "pg";
import type { OpenedStorageOptions } from "../storage.ts";
import { valueTypes } from "./value-types.ts";

/** Limits of a connection, set once it is open, since poolers refuse such startup parameters. */
export interface ConnectionLimits
  extends Pick<PoolConfig, "max" | "query_timeout" | "connectionTimeoutMillis"> {
  statementMs?: number;
  idleInTransactionMs?: number;
  /** Whether the server refuses every write. */
  isReadOnly?: boolean;
}

/** Creates a pool of connections with limits. */
export function newPool(
  { url, logger }: Pick<OpenedStorageOptions, "url" | "logger">,
  { statementMs = 0, idleInTransactionMs = 0, isReadOnly = false, ...limits }: ConnectionLimits,
): Pool {
  const settings = [
    `set statement_timeout = ${statementMs}`,
    `set idle_in_transaction_session_timeout = ${idleInTransactionMs}`,
    ...(isReadOnly ? ["set default_transaction_read_only = on"] : []),
  ].join("; ");
  const pool = new Pool({
    onConnect: async (client) => void (await client.query(settings)),
    connectionString: url,
    application_name: "switchyard",
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    types: valueTypes,
    ...limits,
  });
  // A query in progress on it rejects; without a listener the loss would end the process.
  pool.on("connect", (client) => client.on("error", () => undefined));
  pool.on("error", (error) => logger.warn({ err: error }, "an idle database connection was lost"));
  return pool;
}
