import type { WorkerError } from "./worker-protocol.ts";

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
