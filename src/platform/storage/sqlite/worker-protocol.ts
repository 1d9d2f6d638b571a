import type { CommitStatements } from "../commit-queue.ts";

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
  | { kind: "fold" }
  | { kind: "probe" }
  | { kind: "close" }
);

/**
 * Rows as arrays in the order of `columns`: half the size of objects on their way between threads.
 */
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

/** The answer to the `WorkerRequest` of the same id: its rows, or why the engine refused. */
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

/**
 * After a batch of several units the thread rests for a moment, so that the next batch is a larger
 * one: a commit costs the same whether it holds two units or twenty. A lone unit is followed by no
 * rest.
 */
export const restsAfter = (unitCount: number): boolean => unitCount > 1;

/**
 * How long the rest takes, in milliseconds; a commit that survives power loss takes about as long.
 */
export const restMs = 0.25;

/** What the thread says when its rest is over; no JSON text and no refusals look like it. */
export const restedMessage = "rested";

/** Lock file beside the database is held by another process. */
export const databaseInUseCode = "SWITCHYARD_DATABASE_IN_USE";

const databaseWideCodes =
  /^(SQLITE_(FULL|IOERR|READONLY|CORRUPT|NOTADB|NOMEM|BUSY|CANTOPEN|LOCKED|PERM|AUTH|PROTOCOL))/;

/**
 * Whether a code means trouble of the database rather than of a statement: every unit meets it
 * alike.
 */
export const isDatabaseWide = (code: string): boolean => databaseWideCodes.test(code);

/** Message and code of what a call of the engine threw; code "" where it has none. */
export function engineErrorOf(error: unknown): WorkerError {
  if (!(error instanceof Error)) return { message: String(error), code: "" };
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return { message: error.message, code };
}
