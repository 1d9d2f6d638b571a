import { destination, pino, stdTimeFunctions } from "pino";
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

/**
 * A logger of one JSON object a line, written synchronously to standard error: standard output belongs to the
 * ready line, and a line that explains a crash must not wait in a buffer.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, write, includeContent = false } = options;
  const stream = write === undefined ? destination({ fd: 2, sync: true }) : { write };
  const sink = pino({
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  }, stream);
  const at = (severity: Exclude<LogLevel, "silent">) => (fields: LogFields, message: string): void => {
    if (!sink.isLevelEnabled(severity)) return;
    sink[severity](redactFields(fields, { includeContent }), redactText(message));
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
