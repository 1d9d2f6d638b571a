import { writeSync } from "node:fs";
import { pino } from "pino";
import type { Clock } from "../kernel/clock.ts";
import { redactFields, redactText } from "./redact.ts";

/** The fields of a line, beside its message. Secrets and content in them are removed. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes log lines for the operator. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** The severity from which lines are written; `silent` writes none. */
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Options of a logger. */
export interface LoggerOptions {
  level: LogLevel;
  /** Takes each finished line, newline included; absent means standard error. */
  write?: (line: string) => void;
  /** Whether prompts and answers are logged; false unless the operator asked for them. */
  includeContent?: boolean;
}

/** Milliseconds that a full pipe is left to its reader before it is tried again. */
const fullPipeMs = 10;

/**
 * Creates a pino logger that writes one JSON object per line, synchronously to standard error:
 * standard output is reserved for the ready line, and a line that explains a crash must not wait in
 * a buffer. Secrets and content are recognised by names and values (pino's `redact` needs the path
 * of each). https://getpino.io/#/docs/api
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, write = writeToStandardError, includeContent = false } = options;
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // Fields are plain data of bounded depth and length once they are redacted.
      depthLimit: 10,
      edgeLimit: 1_000,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => redactFields(fields, { includeContent }),
      },
    },
    { write },
  );
  const at =
    (severity: Exclude<LogLevel, "silent">) =>
    (fields: LogFields, message: string): void => {
      if (logger.isLevelEnabled(severity)) logger[severity](fields, redactText(message));
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/**
 * Writes the whole line, however slowly it is read. Drops the rest where nothing reads any more,
 * since there is no place left to report it.
 */
function writeToStandardError(line: string): void {
  let rest = Buffer.from(line);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(2, rest));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) return;
      Bun.sleepSync(fullPipeMs);
    }
  }
}

const linesMax = 20;
const everyMs = 60_000;
const causesMax = 1_000;

/**
 * Returns a logger that writes at most 20 warnings and errors per minute and message, so that a
 * full disk is not filled further. The first line of the next minute says how many were left out.
 */
export function boundedLogger(logger: Logger, clock: Clock): Logger {
  const causes = new Map<string, { sinceMs: number; lines: number }>();
  const bounded =
    (write: Logger["error"]) =>
    (fields: LogFields, message: string): void => {
      const nowMs = clock.monotonicMs();
      const key = causes.has(message) || causes.size < causesMax ? message : "";
      const cause = causes.get(key);
      if (cause === undefined || nowMs - cause.sinceMs >= everyMs) {
        const leftOut = Math.max(0, (cause?.lines ?? 0) - linesMax);
        causes.set(key, { sinceMs: nowMs, lines: 1 });
        return write(leftOut > 0 ? { ...fields, left_out: leftOut } : fields, message);
      }
      cause.lines += 1;
      if (cause.lines <= linesMax) write(fields, message);
    };
  return {
    debug: logger.debug,
    info: logger.info,
    warn: bounded(logger.warn),
    error: bounded(logger.error),
  };
}
