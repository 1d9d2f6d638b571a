import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/response.ts";
import type { ErrorContext } from "../dialect.ts";
import { errorBody, errorMessage, readErrorBody, reportError } from "../errors.ts";
import { asObject } from "../wire-fields.ts";
import { responseRecord } from "./answer-fields.ts";

/** What an error answer says. */
export const readError = (status: number, body: unknown): ReportedError =>
  readErrorBody(status, body);

/**
 * An error that a stream or a failed response reports: flat, as OpenAI's reference has it, or in a
 * member `error`.
 */
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

/**
 * Codes that Codex (0.169) acts on, by the gateway's: it stops on the first three and retries a
 * `server_error`. What is not named is the server's.
 */
const knownCodes: Readonly<Record<string, string>> = {
  rate_limit_exceeded: "rate_limit_exceeded",
  ip_rate_limit_exceeded: "rate_limit_exceeded",
  context_length_exceeded: "context_length_exceeded",
  insufficient_balance: "insufficient_quota",
  insufficient_quota: "insufficient_quota",
  plan_required: "insufficient_quota",
  bad_request: "invalid_prompt",
  invalid_request: "invalid_prompt",
  unprocessable_entity: "invalid_prompt",
  unsupported_content: "invalid_prompt",
  content_filter: "invalid_prompt",
  invalid_prompt: "invalid_prompt",
};

/** The code of a response's `error`, in OpenAI's words. */
const failureCode = ({ code }: ReportedError): string => knownCodes[code ?? ""] ?? "server_error";

/** The words; a wait is named as Codex looks for it. */
function failureMessage(error: ReportedError): string {
  const { message, retryAfterSeconds } = error;
  if (
    retryAfterSeconds === undefined ||
    failureCode(error) !== "rate_limit_exceeded" ||
    /try again in/i.test(message)
  )
    return message;
  return `${message} Please try again in ${retryAfterSeconds}s.`;
}

/** `error` of a failed response. */
export const failure = (error: ReportedError): JsonObject => ({
  code: failureCode(error),
  message: failureMessage(error),
});

/**
 * The `error` event that stands before `response.failed`: only both together are heard by every
 * client. OpenAI's reference has its members flat, the AI SDK nested; the nested one is the
 * contract's envelope.
 */
export const errorEvent = (error: ReportedError): JsonObject => ({
  ...failure(error),
  param: error.param ?? null,
  ...errorBody(error),
});

/** The JSON body of an error answer. */
export const encodeError = (error: GatewayError, context: ErrorContext): JsonObject =>
  errorBody(reportError(error, context));

/** One event of a stream as an SSE frame. */
export const eventFrame = (type: string, fields: JsonObject): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** Where a stream stands that is to end in failure. */
interface FailingStream {
  id: string;
  model: string;
  createdAtSeconds: number;
  /** Number of the next event. */
  sequenceNumber: number;
  /** What was delivered of it. */
  output?: readonly JsonObject[];
  requestBody?: Readonly<Record<string, unknown>>;
}

/** The two frames that end a stream in failure. */
export function failureFrames(error: ReportedError, stream: FailingStream): string[] {
  const { sequenceNumber, requestBody, output = [], ...facts } = stream;
  const ending = { status: "failed", error: failure(error), incomplete_details: null } as const;
  const response = responseRecord(
    { ...facts, output, ending },
    { ...(requestBody !== undefined && { requestBody }) },
  );
  return [
    eventFrame("error", { ...errorEvent(error), sequence_number: sequenceNumber }),
    eventFrame("response.failed", { response, sequence_number: sequenceNumber + 1 }),
  ];
}

/** The frames that end a stream of which nothing was sent yet. */
export const encodeStreamError = (error: GatewayError, context: ErrorContext): string[] =>
  failureFrames(reportError(error, context), {
    id: `resp_${context.traceId}`,
    model: "",
    createdAtSeconds: 0,
    sequenceNumber: 0,
  });
