import type { Clock } from "../lib/clock.ts";
import type { LogFields, Logger } from "./logger.ts";

const linesMax = 20;
const everyMs = 60_000;
const causesMax = 1_000;

/**
 * A logger that writes at most 20 warnings and errors a minute of one message, so that a disk which is full is not filled further: the
 * first line of the next minute says how many were left out.
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
