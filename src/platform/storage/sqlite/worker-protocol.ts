import type { CommitStatements } from "../packed-unit.ts";

/** How a worker opens its connection. */
export interface OpenRequest {
  /** Absolute path of the database file. */
  path: string;
  role: "writer" | "reader";
  /** FULL survives power loss, NORMAL survives the end of the process. */
  synchronous: "FULL" | "NORMAL";
  /** How long the writer waits for another process to give the database up. */
  lockTimeoutMs: number;
}

/** What the main thread asks of a worker; answered by a `WorkerResponse` of the same id. */
export type WorkerRequest = { id: number } & (
  | { kind: "open"; options: OpenRequest }
  | { kind: "prepare"; statements: CommitStatements }
  | { kind: "query"; sql: string; parameters: readonly unknown[] }
  | { kind: "rollback" }
  | { kind: "close" }
);

/** Rows as arrays in the order of `columns`: half the size of objects on their way between threads. */
export interface QueryRows {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
  changes?: number;
  lastInsertRowid?: number | bigint;
}

/** Why the engine refused; errors lose their code when they are cloned, so it travels apart. */
export interface WorkerError {
  message: string;
  code: string;
}

export interface WorkerResponse {
  id: number;
  result?: QueryRows;
  error?: WorkerError;
}

/**
 * Batches travel as one JSON text each way, which measured fastest: packed units to the worker, and
 * back these refusals, or the empty text when every unit is durable.
 */
export type BatchRefusal = [index: number, message: string, code: string];

/** Lock file beside the database is held by another process. */
export const databaseInUseCode = "SWITCHYARD_DATABASE_IN_USE";
