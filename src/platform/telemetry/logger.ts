import { writeSync } from "node:fs";
import { systemClock } from "../lib/clock.ts";
import { redactFields, redactText } from "./redact.ts";

/** What a line is about, beside its message; secrets and content in it are taken out. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes lines for the operator. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** Severity from which lines are written; `silent` writes none. */
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** How a logger is built. */
export interface LoggerOptions {
  level: LogLevel;
  /** Takes each finished line, newline included; standard error when absent. */
  write?: (line: string) => void;
  /** Lets prompts and answers through; false unless the operator asked for them. */
  includeContent?: boolean;
}

/** How much each level weighs; lines below the level that is set are not written. */
const severities: Readonly<Record<LogLevel, number>> = {
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  silent: Number.POSITIVE_INFINITY,
};

/** How long a pipe that is full is left to its reader before it is tried again. */
const fullPipeMs = 10;

/**
 * A logger of one JSON object a line, written synchronously to standard error: standard output belongs to the
 * ready line, and a line that explains a crash must not wait in a buffer. Fields are plain data once they are
 * redacted, so that writing them takes no library.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, write = writeToStandardError, includeContent = false } = options;
  const at =
    (severity: Exclude<LogLevel, "silent">) =>
    (fields: LogFields, message: string): void => {
      if (severities[severity] < severities[level]) return;
      const time = new Date(systemClock.nowMs()).toISOString();
      const line = {
        level: severity,
        time,
        ...redactFields(fields, { includeContent }),
        msg: redactText(message),
      };
      write(`${JSON.stringify(line)}\n`);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Writes the whole line, however slowly it is read. Where nobody reads any more, there is nobody to tell. */
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
