import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/response.ts";
import type { ErrorContext, FailedStreamContext } from "../dialect.ts";
import { errorBody, errorMessage, readErrorBody, reportError } from "../errors.ts";
import { asObject } from "../shared/wire-fields.ts";
import { responseRecord } from "./answer-fields.ts";

/** Reads an error answer. */
export const readError = (status: number, body: unknown): ReportedError =>
  readErrorBody(status, body);

/**
 * Reads an error that a stream or a failed response reports: flat, as in OpenAI's reference, or in
 * a member `error`.
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
 * The codes that Codex (0.169) acts on, by the gateway's: it stops on the first three and retries a
 * `server_error`, which every other code becomes.
 */
const knownCodes: Readonly<Record<string, string>> = {
  rate_limit_exceeded: "rate_limit_exceeded",
  ip_rate_limit_exceeded: "rate_limit_exceeded",
  context_length_exceeded: "context_length_exceeded",
  insufficient_balance: "insufficient_quota",
  insufficient_quota: "insufficient_quota",
  plan_required: "insufficient_quota",
  run_exhausted: "insufficient_quota",
  bad_request: "invalid_prompt",
  invalid_request: "invalid_prompt",
  unprocessable_entity: "invalid_prompt",
  unsupported_content: "invalid_prompt",
  content_filter: "invalid_prompt",
  invalid_prompt: "invalid_prompt",
};

/** Returns the code of a response's `error`, in OpenAI's terms. */
const failureCode = ({ code }: ReportedError): string => knownCodes[code ?? ""] ?? "server_error";

/** Returns the message; a wait is worded as Codex looks for it. */
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

/** Returns `error` of a failed response. */
export const failure = (error: ReportedError): JsonObject => ({
  code: failureCode(error),
  message: failureMessage(error),
});

/**
 * Returns the `error` event that precedes `response.failed`: only both together are noticed by
 * every client. Its members are flat in OpenAI's reference and nested in the AI SDK; the nested one
 * is the contract's envelope.
 */
export const errorEvent = (error: ReportedError): JsonObject => ({
  ...failure(error),
  param: error.param ?? null,
  ...errorBody(error),
});

/** Returns the JSON body of an error answer. */
export const encodeError = (error: GatewayError, context: ErrorContext): JsonObject =>
  errorBody(reportError(error, context));

/** Returns one event of a stream as an SSE frame. */
export const eventFrame = (type: string, fields: JsonObject): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** The state of a stream that is to end in failure. */
interface FailingStream {
  id: string;
  model: string;
  createdAtSeconds: number;
  /** The number of the next event. */
  sequenceNumber: number;
  /** The output items that were delivered. */
  output?: readonly JsonObject[];
  requestBody?: Readonly<Record<string, unknown>>;
}

/** Returns the two frames that end a stream in failure. */
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

/** Returns the frames of a stream that fails before its first event. */
export function encodeStreamError(error: GatewayError, context: FailedStreamContext): string[] {
  const { traceId, model, nowSeconds: createdAtSeconds, requestBody } = context;
  const facts = { id: `resp_${traceId}`, model, createdAtSeconds };
  // Clients ignore a response until they have received its creation.
  const created = responseRecord({ ...facts, output: [] }, { requestBody });
  return [
    eventFrame("response.created", { response: created, sequence_number: 0 }),
    ...failureFrames(reportError(error, context), { ...facts, requestBody, sequenceNumber: 1 }),
  ];
}
