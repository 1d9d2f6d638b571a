import { errorCatalog, GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import {
  type Json,
  type AnyEndpoint,
  type DescribedHeader,
  everywhere,
  ofCounted,
  ofInference,
  ofErrors,
  headerReferences,
  isInference,
} from "./open-api-errors.ts";

/** The meaning of an error's status, and the name of its component. */
const errorAnswers = {
  400: ["BadRequest", "A field, parameter or header is invalid; `error.param` names it."],
  401: ["Unauthorized", "The credential is missing, invalid or of the wrong family."],
  402: ["PaymentRequired", "The balance, a limit or a budget is too low for the request."],
  403: [
    "Forbidden",
    "The credential lacks a scope, or the endpoint, address or workspace is not allowed.",
  ],
  404: ["NotFound", "The resource of the path, or the model of the body, does not exist."],
  408: ["RequestTimeout", "The request or its answer took too long."],
  409: [
    "Conflict",
    "The request conflicts with an existing record, or with a request in progress.",
  ],
  413: ["ContentTooLarge", "The body is larger than this endpoint allows."],
  429: [
    "TooManyRequests",
    "A rate limit or a quota is exhausted; `Retry-After` has the seconds to wait.",
  ],
  500: ["InternalServerError", "The gateway failed."],
  502: ["BadGateway", "No provider gave a usable answer."],
  503: ["ServiceUnavailable", "The gateway or every provider is temporarily unavailable."],
  504: ["GatewayTimeout", "The provider took too long."],
} as const;

type ErrorStatus = keyof typeof errorAnswers;

const statuses = Object.keys(errorAnswers).map((status) => Number(status) as ErrorStatus);

const codesOf = (status: number): ErrorCode[] =>
  (Object.keys(errorCatalog) as ErrorCode[]).filter((code) => errorCatalog[code].status === status);

const paymentExample = {
  reason: "balance_too_low",
  worst_case_usd: 0.14,
  available_usd: 0.001,
  held_usd: 0,
  affordable_output_tokens: 12,
};

/** The codes in examples: those that most callers meet. */
const exampleCodes: Partial<Record<ErrorStatus, ErrorCode>> = {
  401: "invalid_api_key",
  403: "insufficient_scope",
  404: "not_found",
  502: "upstream_error",
  504: "upstream_timeout",
};

/** Returns an example error of a status, as an endpoint renders it. */
function exampleOf({ encodeError }: AnyEndpoint, status: ErrorStatus): Json {
  const code = exampleCodes[status] ?? codesOf(status)[0] ?? "internal_server_error";
  const error = new GatewayError(
    code,
    errorAnswers[status][1],
    status === 402 ? { metadata: paymentExample } : {},
  );
  return encodeError(error, { traceId: "01a204c88074e949d745202377070470" });
}

/** Returns the name of the schema that a rendered error fits. */
function schemaOf(example: Json, status: ErrorStatus): string {
  if (example["type"] === "error") return "MessagesError";
  if (typeof example["error"] === "string")
    return "error_description" in example ? "OauthError" : "OllamaError";
  const fields = Object.keys(Object(example["error"]) as Json);
  if (!fields.includes("metadata") || !fields.includes("type")) return "OtherError";
  return status === 402 ? "PaymentError" : "Error";
}

const prefixes: Readonly<Record<string, string>> = {
  MessagesError: "Messages",
  OauthError: "Oauth",
  OllamaError: "Ollama",
  OtherError: "Other",
};

/** Returns whether an endpoint may answer with a status, as far as its declaration says. */
function answers(endpoint: AnyEndpoint, status: ErrorStatus): boolean {
  const { access, bodyBytesMax, path, method, idempotent, counting } = endpoint;
  const hasBody = bodyBytesMax !== undefined || endpoint.rawBody !== undefined;
  // A malformed Host header is refused on every path.
  if (status === 400) return true;
  if (status === 401) return access.open !== true;
  if (status === 403) return access.open !== true;
  if (status === 404) return path.includes(":") || isInference(endpoint);
  if (status === 409)
    return (
      idempotent === true || (hasBody && method !== "GET" && access.managementScope !== undefined)
    );
  if (status === 413) return hasBody;
  if (status === 429) return counting !== "none" || access.open !== true;
  if (status === 500 || status === 503) return true;
  return isInference(endpoint);
}

/** Collects the errors of a document's endpoints, each once by status and envelope. */
export class ErrorResponses {
  readonly components: Json = {};

  /** Returns the errors of an endpoint by status, and `default` for all others. */
  of(endpoint: AnyEndpoint): Json {
    const named = statuses
      .filter(
        (status) => answers(endpoint, status) && endpoint.bodiesByStatus?.[status] === undefined,
      )
      .map((status) => [status, this.reference(endpoint, status)] as const);
    return { ...Object.fromEntries(named), default: this.reference(endpoint, 500) };
  }

  private reference(endpoint: AnyEndpoint, status: ErrorStatus): Json {
    const [name, description] = errorAnswers[status];
    const example = exampleOf(endpoint, status);
    const schema = schemaOf(example, status);
    const full = `${prefixes[schema] ?? ""}${isInference(endpoint) ? "Inference" : ""}${name}`;
    this.components[full] ??= {
      description: `${description} Codes: ${codesOf(status)
        .map((code) => `\`${code}\``)
        .join(", ")}.`,
      headers: errorHeadersOf(endpoint, status),
      content: {
        "application/json": { schema: { $ref: `#/components/schemas/${schema}` }, example },
      },
    };
    return { $ref: `#/components/responses/${full}` };
  }
}

/** Returns the headers of an endpoint's errors. */
const errorHeadersOf = (endpoint: AnyEndpoint, status: number): Json =>
  headerReferences({
    ...everywhere,
    ...ofCounted,
    ...(isInference(endpoint) ? ofInference : {}),
    ...([402, 429, 503].includes(status)
      ? ofErrors
      : { "X-Should-Retry": ofErrors["X-Should-Retry"] as DescribedHeader }),
  });
