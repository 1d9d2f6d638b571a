import type { GatewayError } from "../../platform/kernel/errors.ts";
import type { JsonObject } from "../canonical/json.ts";
import type { ReportedError, ErrorPart } from "../canonical/response.ts";
import { asArray, asNumber, asObject, asString, withoutUndefined } from "./shared/wire-fields.ts";

/**
 * The most characters of an upstream's message that are passed on; the rest of a proxy's HTML page
 * is of no use.
 */
const maxMessageLength = 2_000;

/**
 * Reads an error answer in any of the forms that servers use: the vendors' envelopes, an `error`
 * that is text, vLLM's flat object, FastAPI's `detail`, an array around one of them, or no JSON at
 * all.
 */
export function readErrorBody(status: number, body: unknown): ReportedError {
  if (typeof body === "string")
    return { message: textMessage(body) ?? `The provider answered with status ${status}.`, status };
  const outer = asObject(asArray(body)?.[0] ?? body) ?? {};
  const inner = asObject(outer.error) ?? outer;
  const code = inner.code ?? inner.status;
  return withoutUndefined<ReportedError>({
    message: (errorMessage(outer) ?? `The provider answered with status ${status}.`).slice(
      0,
      maxMessageLength,
    ),
    code: typeof code === "number" ? String(code) : asString(code),
    type: asString(inner.type),
    param: asString(inner.param),
    status: httpStatus(inner.code) ?? status,
    metadata: asObject(inner.metadata),
    details: asObject(inner.details),
  });
}

/** Returns the message of an error body; undefined when it has none. */
export function errorMessage(outer: JsonObject): string | undefined {
  const inner = asObject(outer.error);
  for (const value of [
    inner?.message,
    outer.error,
    outer.message,
    outer.detail,
    outer.title,
    inner?.code,
  ]) {
    const text = asString(value);
    if (text) return text;
  }
  const validation = (asArray(outer.detail) ?? [])
    .map((entry) => asString(asObject(entry)?.msg))
    .filter((text) => text);
  return validation.length === 0 ? undefined : validation.join("; ");
}

/** Returns the HTTP status that some servers write as the error's code. */
function httpStatus(code: unknown): number | undefined {
  const number = asNumber(code);
  return number !== undefined && number >= 400 && number <= 599 ? number : undefined;
}

function textMessage(body: string): string | undefined {
  const text = body.trim();
  return text === "" || text.startsWith("<") ? undefined : text.slice(0, maxMessageLength);
}

/**
 * Returns a refusal or failure as any client dialect reports it: public facts only, including who
 * refused and the trace id.
 */
export function reportError(error: GatewayError, context: { traceId: string }): ReportedError {
  const { type } = error.facts;
  return {
    message: error.message,
    code: error.code,
    type,
    ...(error.param !== undefined && { param: error.param }),
    status: error.status,
    ...(error.retryAfterSeconds !== undefined && { retryAfterSeconds: error.retryAfterSeconds }),
    metadata: {
      type,
      fault: error.fault,
      ...(context.traceId !== "" && { trace_id: context.traceId }),
      ...(error.metadata as JsonObject),
    },
  };
}

/**
 * Returns the error envelope that satisfies both OpenAI's clients and the contract: all four of
 * OpenAI's keys, and metadata.
 */
export const errorBody = (error: ReportedError): JsonObject => ({
  error: {
    code: error.code ?? "upstream_error",
    message: error.message,
    type: error.type ?? "upstream_error",
    param: error.param ?? null,
    metadata: { type: error.type ?? "upstream_error", ...error.metadata },
  },
});

/** The connection ended before the answer did. */
export const cutStream: ErrorPart = {
  type: "error",
  fault: "cut",
  error: {
    message: "The provider closed the stream before the answer was finished.",
    code: "upstream_error",
    type: "upstream_error",
  },
};

/** An event could not be read. */
export const malformedEvent: ErrorPart = {
  type: "error",
  fault: "malformed",
  error: {
    message: "The provider sent a stream event that is no valid JSON.",
    code: "upstream_error",
    type: "upstream_error",
  },
};

/** Returns the error that a stream reports in a sentence. */
export const textError = (text: string): ErrorPart => ({
  type: "error",
  fault: "reported",
  error: { message: text === "" ? "The provider ended the stream with an error." : text },
});

const brace = 0x7b;

/**
 * Returns an event's data without surrounding white space; nearly all data is an object and has
 * none before it.
 */
export const trimmed = (data: string): string =>
  data.charCodeAt(0) === brace ? data : data.trim();

/** Returns whether data begins like an object, or a list of them. */
export const looksLikeObject = (data: string): boolean =>
  data.charCodeAt(0) === brace || /^\[\s*\{/.test(data);

/**
 * Returns the object of an event's data, or the first of a list; undefined when it contains none.
 */
export function parseEventObject(data: string): JsonObject | undefined {
  try {
    const parsed: unknown = JSON.parse(data);
    return asObject(Array.isArray(parsed) ? parsed[0] : parsed);
  } catch {
    return undefined;
  }
}
