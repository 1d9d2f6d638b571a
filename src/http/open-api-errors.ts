import { idempotencyHeader, replayedHeader } from "./endpoint.ts";
import { brandHeader } from "../platform/kernel/brand.ts";
import { errorCatalog, GatewayError, type ErrorCode } from "../platform/kernel/errors.ts";
import { isStrictObject } from "./check-body.ts";
import type { Endpoint } from "./endpoint.ts";

type Json = Record<string, unknown>;
type AnyEndpoint = Endpoint<never>;

const text = (description: string): Json => ({ type: "string", description });
const number = (description: string): Json => ({ type: "number", description });
const integer = (description: string): Json => ({ type: "integer", description });
const record = (description: string, properties: Json, more: Json = {}): Json => ({
  type: "object",
  description,
  properties,
  ...more,
});

const upstreamError = record("The provider's own words, where it sent an error object.", {
  code: { description: "The provider's code; text or number." },
  type: text("The provider's type."),
  param: text("The field that it names."),
});

const upstreamAttempt = record("An attempt that failed.", {
  backend: text("The provider that was asked."),
  model: text("Id of the model."),
  status: {
    type: ["integer", "null"],
    description: "HTTP status of its answer; null where none came.",
  },
  code: text("Code of the failure."),
  reason: text("Why the next candidate was tried, such as rate_limited or timeout."),
  message: {
    type: ["string", "null"],
    description: "The provider's words; null where it sent none.",
  },
  duration_ms: number("Milliseconds that the attempt took."),
});

const anyMetadata: Json = {
  type: text("Category of the error."),
  fault: {
    type: "string",
    enum: ["client", "gateway", "upstream"],
    description: "Who refused: the caller, the gateway or the provider.",
  },
  trace_id: text("Id of the request; quote it in reports."),
  hint: text("The way out, where there is one."),
  required_scope: text("The scope that the credential lacks."),
  upstream_backend: text("The provider that was asked last."),
  upstream_status: integer("HTTP status of its answer."),
  upstream_message: text("The provider's own words."),
  upstream_error: upstreamError,
  upstream_attempts: {
    type: "array",
    items: upstreamAttempt,
    description: "Every attempt, where more than one was made.",
  },
  left_out: {
    type: "array",
    items: record("A route.", {
      provider: text("The provider."),
      rule: text("The rule that left it out."),
    }),
    description: "Routes that were left out, and why.",
  },
  similar_models: {
    type: "array",
    items: { type: "string" },
    description: "Ids of models that are spelt alike.",
  },
  missing_fields: {
    type: "array",
    items: { type: "string" },
    description: "Fields that are missing.",
  },
};

const paymentMetadata: Json = {
  ...anyMetadata,
  reason: text(
    "What does not bear the request: balance_too_low, key_limit_reached, budget_reached or signup_bonus_pending.",
  ),
  worst_case_usd: number("What the request may cost at most, in USD."),
  available_usd: number("What is left of it, in USD."),
  held_usd: number("What other requests under way hold of it, in USD."),
  affordable_output_tokens: integer("Output tokens that what is left affords."),
  budget_id: text("The budget that is used up."),
  budget_name: text("Its name."),
  budget_scope: text("What it bounds."),
  budget_subject: {
    type: ["string", "null"],
    description: "Id of what it bounds; null for the workspace.",
  },
  budget_period: text("How long its period is."),
};

const codes = {
  type: "string",
  enum: Object.keys(errorCatalog),
  description: "Stable code of the error.",
};

/** Returns the fields of `error`, in every envelope. */
const bodyFields = (metadata: string): Json => ({
  code: codes,
  message: text("What is wrong and how to put it right, for people."),
  type: text("Category of the error."),
  param: {
    type: ["string", "null"],
    description: "The field, parameter or header that is meant; null where none is.",
  },
  metadata: {
    $ref: `#/components/schemas/${metadata}`,
    description: "What else is known of the error.",
  },
});

const contractError = (metadata: string): Json =>
  record(
    "An error.",
    {
      error: record("What went wrong.", bodyFields(metadata), {
        required: ["code", "message", "type", "metadata"],
      }),
    },
    { required: ["error"] },
  );

/** The schemas of error bodies. */
export const errorSchemas: Json = {
  Error: contractError("ErrorMetadata"),
  PaymentError: contractError("PaymentMetadata"),
  MessagesError: record(
    "An error in the Messages dialect.",
    {
      type: { type: "string", const: "error", description: "Always `error`." },
      error: record("What went wrong.", bodyFields("PaymentMetadata"), {
        required: ["type", "message"],
      }),
      request_id: text("Id of the request."),
    },
    { required: ["type", "error"] },
  ),
  OauthError: record(
    "An error of OAuth (RFC 6749, section 5.2).",
    {
      error: text("Code of the error."),
      error_description: text("What is wrong."),
    },
    { required: ["error", "error_description"] },
  ),
  OtherError: record(
    "An error as other clients of this route read it.",
    {},
    { additionalProperties: true },
  ),
  ErrorMetadata: record("What else is known of an error.", anyMetadata, {
    additionalProperties: true,
  }),
  PaymentMetadata: record(
    "What else is known of a request that is not affordable.",
    paymentMetadata,
    { additionalProperties: true },
  ),
};

/** The meaning of an error's status, and the name of its component. */
const errorAnswers = {
  400: ["BadRequest", "A field, parameter or header is wrong; `error.param` names it."],
  401: ["Unauthorized", "The credential is missing, invalid or of the wrong family."],
  402: ["PaymentRequired", "The balance, a limit or a budget does not bear the request."],
  403: [
    "Forbidden",
    "The credential lacks a scope, or the endpoint, address or workspace is not allowed.",
  ],
  404: ["NotFound", "What the path, or the model that the body, names does not exist."],
  408: ["RequestTimeout", "The request or its answer took too long."],
  409: ["Conflict", "The request contradicts what is there, or what is under way."],
  413: ["ContentTooLarge", "The body is larger than this endpoint takes."],
  429: ["TooManyRequests", "A rate window or a quota is used up; `Retry-After` says for how long."],
  500: ["InternalServerError", "The gateway failed."],
  502: ["BadGateway", "No provider gave an answer that can be used."],
  503: ["ServiceUnavailable", "The gateway or every provider is unavailable for now."],
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
  if (typeof example["error"] === "string") return "OauthError";
  const fields = Object.keys(Object(example["error"]) as Json);
  if (!fields.includes("metadata") || !fields.includes("type")) return "OtherError";
  return status === 402 ? "PaymentError" : "Error";
}

const prefixes: Readonly<Record<string, string>> = {
  MessagesError: "Messages",
  OauthError: "Oauth",
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

/** A documented response header. */
interface DescribedHeader {
  description: string;
  type?: "integer" | "number";
}

const everywhere: Record<string, DescribedHeader> = {
  [brandHeader("Trace-Id")]: {
    description: "Id of the request; quote it when you report a problem.",
  },
  "X-Request-Id": { description: "The same id, where OpenAI's clients look for it." },
};

const ofCounted: Record<string, DescribedHeader> = {
  "X-RateLimit-Limit": { description: "Requests that the window admits.", type: "integer" },
  "X-RateLimit-Window": { description: "Length of the window in seconds.", type: "integer" },
  "X-RateLimit-Tier": { description: "The tier that the limit comes from." },
  "RateLimit-Limit": { description: "The same as X-RateLimit-Limit.", type: "integer" },
  "RateLimit-Policy": { description: "Limit and window as `<limit>;w=<seconds>`." },
  "X-RateLimit-Remaining": {
    description:
      "Requests that are left in a window of hours; the windows of a minute do not send it.",
    type: "integer",
  },
  "X-RateLimit-Reset": { description: "Seconds until that window moves on.", type: "integer" },
};

const ofInference: Record<string, DescribedHeader> = {
  [brandHeader("Model")]: { description: "The model that served the request." },
  [brandHeader("Upstream-Model")]: { description: "What its provider calls it." },
  [brandHeader("Provider-Chain")]: { description: "Providers that were asked, in order." },
  [brandHeader("Credential-Source")]: {
    description: "Whose provider key was used: platform or the caller's own.",
  },
  [brandHeader("Requested-Model")]: {
    description: "The model that was asked for, where another one served.",
  },
  [brandHeader("Fallback-Reason")]: { description: "Why another model served." },
  [brandHeader("Credits-Balance-At-Admission")]: {
    description: "Balance in USD before the request.",
    type: "number",
  },
  [brandHeader("Credits-Balance-After-Debit")]: {
    description: `Balance in USD after the charge, where ${brandHeader("Balance-After-Debit")} asked for it.`,
    type: "number",
  },
  [brandHeader("Credits-Charged")]: {
    description: "USD that were charged, where that was asked for.",
    type: "number",
  },
  [brandHeader("Translation-Loss")]: {
    description:
      "Fields that the provider's dialect cannot say, and parts of a whole answer that the client's cannot carry " +
      "(`answer.image`), where there are any; streams name the latter in their final metadata frame.",
  },
  [brandHeader("Output-Cap")]: {
    description:
      "Output tokens that the provider was given as its cap, where the key and the balance bear fewer than were asked for.",
    type: "integer",
  },
  "Server-Timing": { description: "Where the time went, in milliseconds." },
};

const ofErrors: Record<string, DescribedHeader> = {
  "Retry-After": { description: "Seconds to wait before the next try.", type: "integer" },
  "X-Should-Retry": {
    description: "`false` where another try cannot help, or the gateway has tried again already.",
  },
};

const ofReplays: Record<string, DescribedHeader> = {
  [replayedHeader]: {
    description: `true where an earlier request with the same ${idempotencyHeader} got this answer.`,
  },
};

/** Every response header, for the document's components. */
export const headerComponents: Json = Object.fromEntries(
  Object.entries({ ...everywhere, ...ofCounted, ...ofInference, ...ofErrors, ...ofReplays }).map(
    ([name, { description, type = "string" }]) => [name, { description, schema: { type } }],
  ),
);

/** Returns references to headers, by name. */
const headerReferences = (headers: Record<string, DescribedHeader>): Json =>
  Object.fromEntries(
    Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );

/** Returns whether an endpoint calls models, so that its answers name the provider. */
const isInference = ({ counting }: AnyEndpoint): boolean => counting === "by-handler";

/** Returns the headers of an endpoint's successes. */
export const successHeaders = (endpoint: AnyEndpoint): Json => ({
  ...headerReferences({
    ...everywhere,
    ...(endpoint.counting === "none" ? {} : ofCounted),
    ...(isInference(endpoint) ? ofInference : {}),
    ...(endpoint.idempotent ? ofReplays : {}),
  }),
  ...Object.fromEntries(
    Object.entries(endpoint.answerHeaders ?? {}).map(([name, description]) => [
      name,
      { description, schema: { type: "string" } },
    ]),
  ),
});

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

/** The parameter of the idempotency key, for endpoints that accept one. */
export const idempotencyParameter: Json = {
  name: idempotencyHeader,
  in: "header",
  required: false,
  description:
    "A name for this request, such as a UUID: repeated within 24 hours it answers the same and does nothing.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

/** Marks a body's schema as refusing other fields, where the endpoint does. */
export const refusingOthers = (endpoint: AnyEndpoint, schema: Json): Json =>
  isStrictObject(endpoint.rawBody ?? endpoint.body) && endpoint.body !== undefined
    ? { ...schema, additionalProperties: false }
    : schema;
