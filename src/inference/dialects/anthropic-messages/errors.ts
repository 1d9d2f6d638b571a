import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/response.ts";
import type { ErrorContext } from "../dialect.ts";
import { errorMessage, readErrorBody, reportError } from "../errors.ts";
import { asObject, asString } from "../shared/wire-fields.ts";
import { frame } from "./answer-fields.ts";

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

/**
 * Reads an error answer, in Anthropic's envelope or in one of those that compatible servers use.
 */
export const readError = (status: number, body: unknown): ReportedError =>
  readErrorBody(status, body);

/** Reads an error event of a stream; its type determines the status. */
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

/**
 * Anthropic's error type by HTTP status; 5xx without a row is `api_error`, 4xx
 * `invalid_request_error`.
 */
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
  // The caller's own spending cap. Claude Code shows a 429 of this type verbatim.
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

/**
 * Returns the details that Anthropic's clients act upon, such as those of a thread that was lost:
 * the gateway's own, or the provider's.
 */
const detailsOf = ({ metadata }: ReportedError): JsonObject | undefined =>
  asObject(metadata?.details) ?? asObject(asObject(metadata?.upstream_error)?.details);

/** Returns Anthropic's envelope with the contract's code and metadata. */
function errorBody(error: ReportedError): JsonObject {
  const requestId = error.metadata?.trace_id;
  const details = detailsOf(error);
  const overflow = error.code === "context_length_exceeded";
  return {
    type: "error",
    error: {
      type: typeOf(error),
      message: overflow ? contextOverflowText(error) : error.message,
      code: error.code ?? "upstream_error",
      ...(error.param !== undefined && { param: error.param }),
      ...(details !== undefined && { details }),
      metadata: { type: error.type ?? "upstream_error", ...error.metadata },
    },
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

/** Returns the frame that ends a stream in failure. */
export const errorFrame = (error: ReportedError): string => frame(errorBody(error));

/** Returns the JSON body of an error answer. */
export const encodeError = (error: GatewayError, context: ErrorContext): JsonObject =>
  errorBody(reportError(error, context));

/** Returns the one frame that ends a stream in failure. */
export const encodeStreamError = (error: GatewayError, context: ErrorContext): string[] => [
  errorFrame(reportError(error, context)),
];

/**
 * Matches the token limit in the messages of vendors and servers: OpenAI, vLLM, Mistral, Gemini,
 * llama.cpp, Ollama.
 */
const boundPattern =
  /(\d[\d,_]*) (?:tokens? )?maximum|(?:maximum|limit|context (?:length|window|size)|allowed|available|up to|max)[^\d]{0,60}?(\d[\d,_]*)/gi;
const anyNumber = /\d[\d,_]*/g;

/**
 * The smallest number that counts as tokens. Smaller ones count messages or images, or are a
 * position.
 */
const tokensMin = 256;

/** Matches Anthropic's own two messages; the second makes clients ask for less output. */
const ownForms =
  /prompt is too long: \d+ tokens > \d+ maximum|input length and `?max_tokens`? exceed context limit: \d+ \+ \d+ > \d+/i;

const asTokens = (text: string): number => Number(text.replace(/[,_]/g, ""));

/**
 * Returns the one message that Anthropic's clients act upon when a prompt is too long (Claude Code
 * compacts the conversation): `prompt is too long: N tokens > M maximum`, with the numbers of the
 * upstream's own message.
 */
function contextOverflowText({ message, metadata }: ReportedError): string {
  const said = asString(metadata?.upstream_message) ?? message;
  const own = ownForms.exec(said);
  if (own !== null) return own[0];
  const numbers = (said.match(anyNumber) ?? []).map(asTokens).filter((count) => count >= tokensMin);
  const bounds = [...said.matchAll(boundPattern)]
    .map((match) => asTokens(match[1] ?? match[2] ?? ""))
    .filter((count) => count >= tokensMin);
  const largest = Math.max(0, ...numbers);
  const maximum = bounds.find((bound) => bound < largest);
  if (maximum !== undefined) return `prompt is too long: ${largest} tokens > ${maximum} maximum`;
  return `prompt is too long: more tokens than the model's maximum (${said})`;
}
