import type { ErrorCode } from "../platform/lib/errors.ts";
import type { ErrorEncoder } from "./error-envelope.ts";

/** Codes of ours in the words of OAuth (RFC 6749, section 5.2); the others are OAuth's already. */
const oauthCodes: Readonly<Partial<Record<ErrorCode, string>>> = {
  bad_request: "invalid_request",
  missing_required_fields: "invalid_request",
  content_too_large: "invalid_request",
  rate_limit_exceeded: "temporarily_unavailable",
  ip_rate_limit_exceeded: "temporarily_unavailable",
  service_unavailable: "temporarily_unavailable",
  internal_server_error: "server_error",
};

/** The flat errors of device and token routes: `{error, error_description}`. */
export const encodeOauthError: ErrorEncoder = ({ code, message }) => ({
  error: oauthCodes[code] ?? code,
  error_description: message,
});
