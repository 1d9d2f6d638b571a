import { errorCatalog, GatewayError, type ErrorCode } from "../platform/kernel/errors.ts";
import { fieldsOf } from "../platform/kernel/json/json-members.ts";
import type { RequestHeaders } from "./served-request.ts";
import { SharedStateAwayError } from "../platform/shared-state/shared-state-error.ts";
import { StorageUnavailableError } from "../platform/storage/storage-error.ts";

/** Renders an error as a body of a dialect. */
export type ErrorEncoder = (
  error: GatewayError,
  context: {
    traceId: string;
    /** The headers of the request, for paths that two dialects share. */
    headers?: RequestHeaders;
    /** Whether the query of the request has a key, as Google's clients send it. */
    keyInQuery?: boolean;
  },
) => Record<string, unknown>;

/**
 * Renders the contract's envelope, which OpenAI's clients also read: `code` is the stable slug,
 * `metadata.type` the category, and `metadata.fault` who refused: client, gateway or upstream.
 */
export const encodeContractError: ErrorEncoder = (error, { traceId }) => {
  const { type } = errorCatalog[error.code];
  return {
    error: {
      code: error.code,
      message: error.message,
      type,
      param: error.param ?? null,
      metadata: {
        type,
        fault: error.fault,
        ...(traceId === "" ? {} : { trace_id: traceId }),
        ...error.metadata,
      },
    },
  };
};

/**
 * Returns whether a client is one of OpenRouter's SDKs, by the user agents of npm `@openrouter/sdk`
 * 1.3 and PyPI `openrouter` 1.3 (2026-11).
 */
export const isOpenRouterSdk = (headers: RequestHeaders): boolean =>
  /^speakeasy-sdk\/.*\bopenrouter\b/.test(headers.get("user-agent") ?? "");

/**
 * Returns an error's body as its client can read it: OpenRouter's SDKs know the class of an error
 * only where `code` is the status. The code itself is then in `metadata`.
 */
export function readableBody(
  body: Record<string, unknown>,
  { headers, status }: { headers: RequestHeaders; status: number },
): Record<string, unknown> {
  const error = fieldsOf(body["error"]);
  const { code } = error;
  if (typeof code !== "string" || !isOpenRouterSdk(headers)) return body;
  const metadata = { ...fieldsOf(error["metadata"]), code };
  return { ...body, error: { ...error, code: status, metadata } };
}

/**
 * Seconds that a 429 asks callers to wait when its provider named no time: the contract promises
 * the header on every one.
 */
const rateWindowSeconds = 60;

/** Returns the headers that tell a client what to do next. */
export function errorHeaders(error: GatewayError): Record<string, string> {
  const headers: Record<string, string> = { ...error.headers };
  // The gateway has already retried elsewhere, and a client's retry would multiply that.
  if (!error.retry || error.code === "upstream_exhausted") headers["x-should-retry"] = "false";
  const retryAfterSeconds =
    error.retryAfterSeconds ?? (error.status === 429 ? rateWindowSeconds : undefined);
  if (retryAfterSeconds !== undefined) headers["retry-after"] = String(retryAfterSeconds);
  // The required type of credential (RFC 9110, 15.5.2; RFC 6750, 3).
  if (error.status === 401) headers["www-authenticate"] = "Bearer";
  return headers;
}

/**
 * Converts anything thrown to the error that callers may see. Errors that are not a `GatewayError`
 * become a bare 500.
 */
export function asGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (thrown instanceof StorageUnavailableError) {
    return new GatewayError(
      "service_unavailable",
      "The gateway's database does not answer at the moment. Try again in a few seconds.",
      { cause: thrown, retryAfterSeconds: 2 },
    );
  }
  if (thrown instanceof SharedStateAwayError) {
    return new GatewayError(
      "service_unavailable",
      "The state that the gateways share is unavailable at the moment. Try again in a few seconds.",
      { cause: thrown, retryAfterSeconds: 2 },
    );
  }
  return new GatewayError(
    "internal_server_error",
    "The gateway failed on this request. Quote the trace id when you report it.",
    {
      cause: thrown,
    },
  );
}

/** OAuth's codes (RFC 6749, section 5.2) for the gateway's own. All others are OAuth's already. */
const oauthCodes: Readonly<Partial<Record<ErrorCode, string>>> = {
  bad_request: "invalid_request",
  missing_required_fields: "invalid_request",
  content_too_large: "invalid_request",
  rate_limit_exceeded: "temporarily_unavailable",
  ip_rate_limit_exceeded: "temporarily_unavailable",
  service_unavailable: "temporarily_unavailable",
  internal_server_error: "server_error",
};

/** Renders the flat errors of the device and token routes: `{error, error_description}`. */
export const encodeOauthError: ErrorEncoder = ({ code, message }) => ({
  error: oauthCodes[code] ?? code,
  error_description: message,
});
