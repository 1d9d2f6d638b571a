import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/response.ts";
import { readErrorBody } from "../errors.ts";
import { asArray, asObject, asString, withoutUndefined } from "../shared/wire-fields.ts";

/**
 * Reads an error answer: Google's envelope, alone or in an array (streams without `alt=sse`), or
 * what a proxy made of it. An invalid key is reported as 400 with the reason API_KEY_INVALID, which
 * is a 401 elsewhere. Source: google.aip.dev/193 (2026-11).
 */
export function readError(status: number, body: unknown): ReportedError {
  const reported = readErrorBody(status, body);
  const error = asObject(envelope(body)?.error);
  if (error === undefined) return reported;
  const { reason, retryDelay } = readDetails(error);
  return withoutUndefined<ReportedError>({
    ...reported,
    code: asString(error.status) ?? reported.code,
    status: reason === "API_KEY_INVALID" ? 401 : reported.status,
    metadata:
      reason === undefined && retryDelay === undefined
        ? undefined
        : withoutUndefined<JsonObject>({ reason, retry_delay: retryDelay }),
  });
}

/** Reads an error that came in place of a chunk; undefined when there is none. */
export const readStreamError = (chunk: JsonObject): ReportedError | undefined =>
  chunk.error === undefined || chunk.error === null ? undefined : readError(502, chunk);

const envelope = (body: unknown): JsonObject | undefined => asObject(asArray(body)?.[0] ?? body);

/**
 * Returns the machine-readable reason (google.rpc.ErrorInfo) and how long to wait
 * (google.rpc.RetryInfo), such as `30s`.
 */
function readDetails(error: JsonObject): {
  reason: string | undefined;
  retryDelay: string | undefined;
} {
  const details = (asArray(error.details) ?? []).map(asObject);
  const find = (key: string): string | undefined =>
    details.map((detail) => asString(detail?.[key])).find((text) => text !== undefined);
  return { reason: find("reason"), retryDelay: find("retryDelay") };
}
