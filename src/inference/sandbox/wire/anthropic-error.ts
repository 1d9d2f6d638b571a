import type { Refusal } from "../dialect.ts";

const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** Anthropic's error body. */
export const anthropicError = ({
  status,
  message,
  requestId,
}: Refusal): Record<string, unknown> => ({
  type: "error",
  error: {
    type: typeByStatus[status] ?? (status < 500 ? "invalid_request_error" : "api_error"),
    message,
  },
  request_id: `req_${requestId}`,
});
