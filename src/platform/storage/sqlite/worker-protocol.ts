import type { CommitStatements } from "../commit-queue.ts";

/** The options with which a worker opens its connection. */
export interface OpenRequest {
  /** The absolute path of the database file. */
  path: string;
  role: "writer" | "reader";
  /** FULL survives power loss, NORMAL survives the end of the process. */
  synchronous: "FULL" | "NORMAL";
  /** Milliseconds that the writer waits for another process to release the database. */
  lockTimeoutMs: number;
}

/**
 * A request from the main thread to a worker, which answers with a `WorkerResponse` of the same id.
 */
export type WorkerRequest = { id: number } & (
  | { kind: "open"; options: OpenRequest }
  | { kind: "prepare"; statements: CommitStatements }
  | { kind: "query"; sql: string; parameters: readonly unknown[] }
  | { kind: "rollback" }
  | { kind: "fold" }
  | { kind: "probe" }
  | { kind: "close" }
);

/**
 * Rows as arrays in the order of `columns`, which are half the size of objects when they pass
 * between threads.
 */
export interface QueryRows {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
  changes?: number;
  lastInsertRowid?: number | bigint;
}

/** The engine's error. Errors lose their code when they are cloned, so it is sent separately. */
export interface WorkerError {
  message: string;
  code: string;
}

/** The answer to the `WorkerRequest` of the same id: its rows, or why the engine refused. */
export interface WorkerResponse {
  id: number;
  result?: QueryRows;
  error?: WorkerError;
}

/**
 * A refused unit. Batches pass as one JSON text each way, which measured fastest: packed units to
 * the worker, and back these refusals, or the empty text when every unit is durable.
 */
export type BatchRefusal = [index: number, message: string, code: string];

/**
 * Returns whether the thread rests for a moment after a batch of this many units, so that the next
 * batch is a larger one: a commit costs the same whether it holds two units or twenty. A lone unit
 * is followed by no rest.
 */
export const restsAfter = (unitCount: number): boolean => unitCount > 1;

/** Milliseconds of the rest; a commit that survives power loss takes about as long. */
export const restMs = 0.25;

/** The thread's message when its rest is over. It differs from any JSON text or refusal. */
export const restedMessage = "rested";

/** The code where another process holds the lock file beside the database. */
export const databaseInUseCode = "SWITCHYARD_DATABASE_IN_USE";

const databaseWideCodes =
  /^(SQLITE_(FULL|IOERR|READONLY|CORRUPT|NOTADB|NOMEM|BUSY|CANTOPEN|LOCKED|PERM|AUTH|PROTOCOL))/;

/**
 * Returns whether a code is a problem of the database rather than of a statement, so that every
 * unit would meet it.
 */
export const isDatabaseWide = (code: string): boolean => databaseWideCodes.test(code);

/** Returns the message and code of an engine's error; code "" where it has none. */
export function engineErrorOf(error: unknown): WorkerError {
  if (!(error instanceof Error)) return { message: String(error), code: "" };
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return { message: error.message, code };
}
