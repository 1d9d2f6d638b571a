import { brand } from "../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/response.ts";
import type { ErrorContext } from "../dialect.ts";
import { readErrorBody, reportError } from "../errors.ts";
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

/** Google's word for each HTTP status; others are `INTERNAL` or `INVALID_ARGUMENT`. */
const words: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  402: "RESOURCE_EXHAUSTED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  408: "DEADLINE_EXCEEDED",
  409: "ABORTED",
  413: "INVALID_ARGUMENT",
  422: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  501: "UNIMPLEMENTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** Codes of the gateway that say that money is gone, so that a repetition cannot help. */
const moneyCodes: ReadonlySet<string> = new Set([
  "insufficient_balance",
  "spend_limit_reached",
  "run_exhausted",
  "plan_required",
]);

/** Google's reasons that clients look for, by the gateway's codes. */
const reasonsByCode: Readonly<Record<string, string>> = {
  invalid_api_key: "API_KEY_INVALID",
  missing_api_key: "CREDENTIALS_MISSING",
};

/**
 * Returns Google's envelope (google.aip.dev/193) with the contract's code and metadata. Where money
 * is gone the reason is the one upon which gemini-cli (0.61) ends its retries at once.
 */
function errorBody(error: ReportedError): JsonObject {
  const { status = 500, code = "upstream_error", metadata, param, retryAfterSeconds } = error;
  const isBroke = moneyCodes.has(code);
  const details: JsonObject[] = [
    {
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: reasonsByCode[code] ?? (isBroke ? brokeReason : code.toUpperCase()),
      domain: brand.productName.toLowerCase(),
      metadata: { code, ...textsOf(metadata) },
    },
  ];
  if (retryAfterSeconds !== undefined && !isBroke)
    details.push({
      "@type": "type.googleapis.com/google.rpc.RetryInfo",
      retryDelay: `${retryAfterSeconds}s`,
    });
  if (param !== undefined)
    details.push({
      "@type": "type.googleapis.com/google.rpc.BadRequest",
      fieldViolations: [{ field: param, description: error.message }],
    });
  return {
    error: {
      code: status,
      message: error.message,
      status: words[status] ?? (status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT"),
      details,
      metadata: { type: error.type ?? "upstream_error", code, ...metadata },
    },
  };
}

/** The reason by which gemini-cli recognises that credits are gone. */
const brokeReason = "INSUFFICIENT_G1_CREDITS_BALANCE";

/** Returns the members that are texts and numbers, as texts: Google's metadata has no others. */
const textsOf = (metadata: JsonObject = {}): JsonObject =>
  Object.fromEntries(
    Object.entries(metadata).flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number" ? [[name, String(value)]] : [],
    ),
  );

/**
 * Returns the frames that end a stream in failure, each of which has to be sent on its own: some
 * clients notice only the event, others only the bare object after it (2026-11).
 */
export function errorFrames(error: ReportedError): string[] {
  const text = JSON.stringify(errorBody(error));
  return [`data: ${text}\n\n`, `${text}\n\n`];
}

/** Returns the JSON body of an error answer. */
export const encodeError = (error: GatewayError, context: ErrorContext): JsonObject =>
  errorBody(reportError(error, context));

/** Returns the frames that end a stream in failure. */
export const encodeStreamError = (error: GatewayError, context: ErrorContext): string[] =>
  errorFrames(reportError(error, context));

/** The frame that is sent while the upstream is silent: clients fail on comments (2026-11). */
export const pingFrame = "\n\n";
