import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import { errorMessage, readErrorBody } from "../read-error-body.ts";
import { asObject } from "../request-fields.ts";

/** What an error answer says. */
export const readError = (status: number, body: unknown): ReportedError =>
  readErrorBody(status, body);

/** An error that a stream or a failed response tells of: flat, as OpenAI's reference has it, or in a member `error`. */
export function readReportedError(fields: JsonObject): ReportedError {
  const inner = asObject(fields.error) ?? fields;
  const { status, type, ...error } = readErrorBody(0, { error: inner });
  return {
    ...error,
    message:
      errorMessage({ error: inner }) ??
      errorMessage(fields) ??
      "The provider ended the answer with an error.",
    ...(type !== undefined && type !== "error" && { type }),
    ...(status && { status }),
  };
}
