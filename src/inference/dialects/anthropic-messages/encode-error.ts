import type { GatewayError } from "../../../platform/lib/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import type { ErrorContext } from "../dialect.ts";
import { reportError } from "../report-error.ts";
import { contextOverflowText } from "./context-overflow.ts";
import { frame } from "./frame.ts";

/** Anthropic's error type by HTTP status; 5xx without a row is `api_error`, 4xx `invalid_request_error`. */
const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  408: "timeout_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

function typeOf({ status, type, code }: ReportedError): string {
  // A cap of the caller's own, which Claude Code shows as it is worded where it is a 429 of this type.
  if (code === "spend_limit_reached") return "billing_error";
  if (status === undefined)
    return type !== undefined && anthropicTypes.has(type) ? type : "api_error";
  return typeByStatus[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
}

const anthropicTypes = new Set([
  ...Object.values(typeByStatus),
  "invalid_request_error",
  "api_error",
]);

/** Anthropic's envelope with the contract's code and metadata. */
function errorBody(error: ReportedError): JsonObject {
  const requestId = error.metadata?.trace_id;
  const overflow = error.code === "context_length_exceeded";
  return {
    type: "error",
    error: {
      type: typeOf(error),
      message: overflow ? contextOverflowText(error) : error.message,
      code: error.code ?? "upstream_error",
      ...(error.param !== undefined && { param: error.param }),
      metadata: { type: error.type ?? "upstream_error", ...error.metadata },
    },
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

/** The frame that ends a stream in failure. */
export const errorFrame = (error: ReportedError): string => frame(errorBody(error));

/** The JSON body of an error answer. */
export const encodeError = (error: GatewayError, context: ErrorContext): JsonObject =>
  errorBody(reportError(error, context));

/** The one frame that ends a stream in failure. */
export const encodeStreamError = (error: GatewayError, context: ErrorContext): string[] => [
  errorFrame(reportError(error, context)),
];
