import type { ErrorEncoder } from "../http/error-envelope.ts";
import type { GatewayError } from "../platform/kernel/errors.ts";

/**
 * JSON-RPC codes of refusals at the door, by HTTP status (contract: "MCP errors"; JSON-RPC 2.0,
 * section 5.1).
 */
function codeOf({ status, code }: GatewayError): number {
  if (code === "invalid_request_body") return -32700;
  if (status === 401) return -32001;
  if (status === 429 || status === 403) return -32000;
  return status >= 500 ? -32603 : -32600;
}

/** Renders a refusal of the whole request, which has no id: nothing of it was looked at. */
export const encodeMcpError: ErrorEncoder = (error) => ({
  jsonrpc: "2.0",
  error: {
    code: codeOf(error),
    message:
      error.status === 401
        ? "Unauthorized"
        : error.status === 429
          ? `${error.message} Retry after ${error.retryAfterSeconds ?? 60} seconds.`
          : error.message,
  },
  id: null,
});
