import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import { errorMessage, readErrorBody } from "../read-error-body.ts";

/** HTTP statuses of Anthropic's error types, for errors that come without one. */
const statusByType: ReadonlyMap<string, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["conflict_error", 409],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

/** What an error answer says, in Anthropic's envelope or in one of those that compatible servers use. */
export const readError = (status: number, body: unknown): ReportedError =>
  readErrorBody(status, body);

/** What an error event of a stream says; the status is that of its type. */
export function readStreamError(event: JsonObject): ReportedError {
  const { type: _event, ...body } = event;
  const { status: reported, ...error } = readErrorBody(0, body);
  const status = reported || statusByType.get(error.type ?? "");
  return {
    ...error,
    message: errorMessage(event) ?? "The provider ended the stream with an error.",
    ...(status !== undefined && { status }),
  };
}
