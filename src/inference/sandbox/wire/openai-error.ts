import type { Refusal } from "../dialect.ts";

const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "insufficient_quota",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

/** OpenAI's error body, of all its surfaces. */
export const openaiError = ({ status, message }: Refusal): { error: Record<string, unknown> } => ({
  error: {
    message,
    type: typeByStatus[status] ?? (status < 500 ? "invalid_request_error" : "server_error"),
    param: null,
    code: status === 429 ? "rate_limit_exceeded" : null,
  },
});
