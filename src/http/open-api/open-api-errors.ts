import { idempotencyHeader, replayedHeader, type Endpoint } from "../endpoint.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { errorCatalog } from "../../platform/kernel/errors.ts";
import { isStrictObject } from "../bodies/check-body.ts";

/** A part of the document. */
export type Json = Record<string, unknown>;
/** An endpoint of any body and caller. */
export type AnyEndpoint = Endpoint<never>;

const text = (description: string): Json => ({ type: "string", description });
const number = (description: string): Json => ({ type: "number", description });
const integer = (description: string): Json => ({ type: "integer", description });
const record = (description: string, properties: Json, more: Json = {}): Json => ({
  type: "object",
  description,
  properties,
  ...more,
});

const upstreamError = record("The error object of the provider, if it sent one.", {
  code: { description: "The provider's error code, a string or a number." },
  type: text("The provider's error type."),
  param: text("The field that the provider named."),
});

const upstreamAttempt = record("An attempt that failed.", {
  backend: text("Provider of the attempt."),
  model: text("Id of the model."),
  status: {
    type: ["integer", "null"],
    description: "HTTP status of the provider's answer; null if none arrived.",
  },
  code: text("Code of the failure."),
  reason: text("Why the next candidate was tried, such as rate_limited or timeout."),
  message: {
    type: ["string", "null"],
    description: "The provider's error message; null if it sent none.",
  },
  duration_ms: number("Duration of the attempt in milliseconds."),
});

const anyMetadata: Json = {
  type: text("Category of the error."),
  fault: {
    type: "string",
    enum: ["client", "gateway", "upstream"],
    description: "Source of the error: the caller, the gateway or the provider.",
  },
  trace_id: text("Id of the request. Include it when you report a problem."),
  hint: text("How to resolve the error, if known."),
  required_scope: text("Scope that the credential lacks."),
  upstream_backend: text("Provider that was tried last."),
  upstream_status: integer("HTTP status of the provider's answer."),
  upstream_message: text("The provider's error message."),
  upstream_error: upstreamError,
  upstream_attempts: {
    type: "array",
    items: upstreamAttempt,
    description: "All attempts, if every provider that was tried failed.",
  },
  left_out: {
    type: "array",
    items: record("A route.", {
      provider: text("The provider."),
      rule: text("The rule that excluded it."),
    }),
    description: "Routes that were excluded, with the reason.",
  },
  similar_models: {
    type: "array",
    items: { type: "string" },
    description: "Ids of models with a similar spelling.",
  },
  missing_fields: {
    type: "array",
    items: { type: "string" },
    description: "Missing fields.",
  },
};

const paymentMetadata: Json = {
  ...anyMetadata,
  reason: text(
    "Why the request cannot be paid: balance_too_low, key_limit_reached, budget_reached or signup_bonus_pending.",
  ),
  worst_case_usd: number("Maximum cost of the request in USD."),
  available_usd: number("Remaining amount in USD."),
  held_usd: number("Amount held by other requests in progress, in USD."),
  affordable_output_tokens: integer("Number of output tokens that the remaining amount can pay."),
  budget_id: text("Id of the exhausted budget."),
  budget_name: text("Its name."),
  budget_scope: text("Scope of the budget."),
  budget_subject: {
    type: ["string", "null"],
    description: "Id of the budget's subject; null for the workspace.",
  },
  budget_period: text("Length of the budget's period."),
};

const codes = {
  type: "string",
  enum: Object.keys(errorCatalog),
  description: "Stable code of the error.",
};

/** Returns the fields of `error`, in every envelope. */
const bodyFields = (metadata: string): Json => ({
  code: codes,
  message: text("Explanation of the error and how to fix it, for people."),
  type: text("Category of the error."),
  param: {
    type: ["string", "null"],
    description: "The invalid field, parameter or header; null if there is none.",
  },
  metadata: {
    $ref: `#/components/schemas/${metadata}`,
    description: "Additional information about the error.",
  },
});

const contractError = (metadata: string): Json =>
  record(
    "An error.",
    {
      error: record("The error.", bodyFields(metadata), {
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
      error: record("The error.", bodyFields("PaymentMetadata"), {
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
      error_description: text("Explanation of the error."),
    },
    { required: ["error", "error_description"] },
  ),
  OllamaError: record(
    "An error in Ollama's form.",
    {
      error: text("Explanation of the error and how to fix it, for people."),
      code: codes,
      metadata: {
        $ref: "#/components/schemas/PaymentMetadata",
        description: "Additional information about the error.",
      },
    },
    { required: ["error", "code", "metadata"] },
  ),
  OtherError: record(
    "An error in the format of other clients of this route.",
    {},
    { additionalProperties: true },
  ),
  ErrorMetadata: record("Additional information about an error.", anyMetadata, {
    additionalProperties: true,
  }),
  PaymentMetadata: record(
    "Additional information about a request that cannot be paid.",
    paymentMetadata,
    { additionalProperties: true },
  ),
};

/** A documented response header. */
export interface DescribedHeader {
  description: string;
  type?: "integer" | "number";
}

/** The headers of every answer. */
export const everywhere: Record<string, DescribedHeader> = {
  [brandHeader("Trace-Id")]: {
    description: "Id of the request. Include it when you report a problem.",
  },
  "X-Request-Id": { description: "Copy of that id, for OpenAI's clients." },
};

/** The headers of requests that are counted in a rate window. */
export const ofCounted: Record<string, DescribedHeader> = {
  "X-RateLimit-Limit": { description: "Requests allowed in the window.", type: "integer" },
  "X-RateLimit-Window": { description: "Length of the window in seconds.", type: "integer" },
  "X-RateLimit-Tier": { description: "Tier of the limit." },
  "RateLimit-Limit": { description: "Copy of X-RateLimit-Limit.", type: "integer" },
  "RateLimit-Policy": { description: "Limit and window as `<limit>;w=<seconds>`." },
  "X-RateLimit-Remaining": {
    description: "Remaining requests in a window of hours; not sent for windows of a minute.",
    type: "integer",
  },
  "X-RateLimit-Reset": { description: "Seconds until the window resets.", type: "integer" },
};

/** The headers of inference. */
export const ofInference: Record<string, DescribedHeader> = {
  [brandHeader("Model")]: { description: "The model that served the request." },
  [brandHeader("Upstream-Model")]: { description: "The provider's name for the model." },
  [brandHeader("Provider-Chain")]: { description: "Providers that were tried, in order." },
  [brandHeader("Credential-Source")]: {
    description: "Owner of the provider key: platform, own_byok or pool.",
  },
  [brandHeader("Requested-Model")]: {
    description: "The requested model, if another one served.",
  },
  [brandHeader("Fallback-Reason")]: { description: "Why another model served the request." },
  [brandHeader("Credits-Balance-At-Admission")]: {
    description: "Balance in USD before the request.",
    type: "number",
  },
  [brandHeader("Credits-Balance-After-Debit")]: {
    description: `Balance in USD after the charge, if ${brandHeader("Balance-After-Debit")} requested it.`,
    type: "number",
  },
  [brandHeader("Credits-Charged")]: {
    description: "Charge in USD, if requested.",
    type: "number",
  },
  [brandHeader("Translation-Loss")]: {
    description:
      "Fields that the provider's dialect cannot express, and parts of a complete answer that the client's dialect cannot " +
      "(`answer.image`), if any; streams name the latter in their final metadata frame.",
  },
  [brandHeader("Output-Cap")]: {
    description:
      "Maximum number of output tokens sent to the provider, if the key or the balance cannot pay the requested number.",
    type: "integer",
  },
  "Server-Timing": { description: "Durations of the parts of the request, in milliseconds." },
};

/** The headers of errors. */
export const ofErrors: Record<string, DescribedHeader> = {
  "Retry-After": { description: "Seconds to wait before the next attempt.", type: "integer" },
  "X-Should-Retry": {
    description: "`false` if a retry cannot succeed, or if the gateway has already retried.",
  },
};

const ofReplays: Record<string, DescribedHeader> = {
  [replayedHeader]: {
    description: `true if this answer was first sent to an earlier request with the same ${idempotencyHeader}.`,
  },
};

/** Every response header, for the document's components. */
export const headerComponents: Json = Object.fromEntries(
  Object.entries({ ...everywhere, ...ofCounted, ...ofInference, ...ofErrors, ...ofReplays }).map(
    ([name, { description, type = "string" }]) => [name, { description, schema: { type } }],
  ),
);

/** Returns references to headers, by name. */
export const headerReferences = (headers: Record<string, DescribedHeader>): Json =>
  Object.fromEntries(
    Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );

/** Returns whether an endpoint calls models, so that its answers name the provider. */
export const isInference = ({ counting }: AnyEndpoint): boolean => counting === "by-handler";

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

/** The parameter of the idempotency key, for endpoints that accept one. */
export const idempotencyParameter: Json = {
  name: idempotencyHeader,
  in: "header",
  required: false,
  description:
    "Idempotency key of this request, such as a UUID. A repetition within 24 hours returns the same answer and does nothing more.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

/** Marks a body's schema as refusing other fields, where the endpoint does. */
export const refusingOthers = (endpoint: AnyEndpoint, schema: Json): Json =>
  isStrictObject(endpoint.rawBody ?? endpoint.body) && endpoint.body !== undefined
    ? { ...schema, additionalProperties: false }
    : schema;
