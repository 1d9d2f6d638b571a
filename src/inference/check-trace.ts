import { GatewayError } from "../platform/lib/errors.ts";

/** Characters that `trace` may have as JSON: its five names fit many times over. */
const traceCharactersMax = 8_192;

/**
 * Refuses a `trace` that cannot be kept. It is stored with the record of the charge, so one that is
 * too large to be written would keep its request from being charged at all. How deep a body may be nested is bounded before.
 */
export function checkTrace(trace: unknown): void {
  if (trace === undefined || trace === null) return;
  if (JSON.stringify(trace).length <= traceCharactersMax) return;
  throw new GatewayError(
    "bad_request",
    `trace: may have at most ${traceCharactersMax} characters of JSON. Send ids and names, not payloads.`,
    { param: "trace" },
  );
}
