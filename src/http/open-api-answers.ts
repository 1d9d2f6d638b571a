import { brandHeader } from "../platform/lib/brand.ts";
import { errorCatalog } from "../platform/lib/errors.ts";
import { idempotencyHeader, replayedHeader } from "./answer-once.ts";
import { isStrictObject } from "./check-body.ts";
import type { Endpoint } from "./endpoint.ts";

type Json = Record<string, unknown>;
type AnyEndpoint = Endpoint<never>;

interface DescribedHeader {
  description: string;
  type?: "integer" | "number";
}

const everywhere: Record<string, DescribedHeader> = {
  [brandHeader("Trace-Id")]: { description: "Id of the request; quote it when you report a problem." },
  "X-Request-Id": { description: "The same id, where OpenAI's clients look for it." },
};

const ofCounted: Record<string, DescribedHeader> = {
  "X-RateLimit-Limit": { description: "Requests that the window admits.", type: "integer" },
  "X-RateLimit-Window": { description: "Length of the window in seconds.", type: "integer" },
  "X-RateLimit-Tier": { description: "The tier that the limit comes from." },
};

const ofInference: Record<string, DescribedHeader> = {
  [brandHeader("Model")]: { description: "The model that served the request." },
  [brandHeader("Upstream-Model")]: { description: "What its provider calls it." },
  [brandHeader("Provider-Chain")]: { description: "Providers that were asked, in order." },
  [brandHeader("Credential-Source")]: { description: "Whose provider key was used: platform or the caller's own." },
  [brandHeader("Translation-Loss")]: {
    description: "Fields that the provider's dialect cannot say, and parts of a whole answer that the client's cannot carry "
      + "(`answer.image`), where there are any; streams name the latter in their final metadata frame.",
  },
  [brandHeader("Output-Cap")]: { description: "Output tokens that are affordable, where fewer than asked.", type: "integer" },
  "Server-Timing": { description: "Where the time went, in milliseconds." },
};

const ofErrors: Record<string, DescribedHeader> = {
  "Retry-After": { description: "Seconds to wait before the next try.", type: "integer" },
};

const ofReplays: Record<string, DescribedHeader> = {
  [replayedHeader]: { description: `true where an earlier request with the same ${idempotencyHeader} got this answer.` },
};

/** Every header that answers may have, for the document's components. */
export const headerComponents: Json = Object.fromEntries(
  Object.entries({ ...everywhere, ...ofCounted, ...ofInference, ...ofErrors, ...ofReplays })
    .map(([name, { description, type = "string" }]) => [name, { description, schema: { type } }]),
);

const references = (headers: Record<string, DescribedHeader>): Json =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const isInference = ({ counting }: AnyEndpoint): boolean => counting === "by-handler";

/** Headers of an endpoint's successes. */
export const successHeaders = (endpoint: AnyEndpoint): Json => ({
  ...references({
    ...everywhere,
    ...(endpoint.counting === "none" ? {} : ofCounted),
    ...(isInference(endpoint) ? ofInference : {}),
    ...(endpoint.idempotent ? ofReplays : {}),
  }),
  ...Object.fromEntries(Object.entries(endpoint.answerHeaders ?? {})
    .map(([name, description]) => [name, { description, schema: { type: "string" } }])),
});

/** What an error's status means, by the name of its component. */
const errorAnswers = {
  400: ["BadRequest", "A field, parameter or header is wrong; `error.param` names it."],
  401: ["Unauthorized", "The credential is missing, invalid or of the wrong family."],
  402: ["PaymentRequired", "The balance, a limit or a budget does not bear the request."],
  403: ["Forbidden", "The credential lacks a scope, or the endpoint, address or workspace is not allowed."],
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

const codesOf = (status: number): string[] =>
  Object.entries(errorCatalog).filter(([, facts]) => facts.status === status).map(([code]) => code);

const exampleOf = (status: ErrorStatus): Json => {
  const [, description] = errorAnswers[status];
  const code = codesOf(status)[0] ?? "internal_server_error";
  const facts = Object.entries(errorCatalog).find(([name]) => name === code)?.[1];
  const type = facts?.type ?? "api_error";
  return { error: { code, message: description, type, param: null, metadata: { type, fault: facts?.fault ?? "gateway" } } };
};

/** Answers by status, for the document's components. */
export const errorComponents: Json = Object.fromEntries(statuses.map((status) => {
  const [name, description] = errorAnswers[status];
  return [name, {
    description: `${description} Codes: ${codesOf(status).map((code) => `\`${code}\``).join(", ")}.`,
    headers: references({ ...everywhere, ...([429, 503].includes(status) ? ofErrors : {}) }),
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" }, example: exampleOf(status) } },
  }];
}));

/** Whether an endpoint answers with a status, as far as its declaration says. */
function answers(endpoint: AnyEndpoint, status: ErrorStatus): boolean {
  const { access, bodyBytesMax, query, path, method, idempotent, counting } = endpoint;
  const hasBody = bodyBytesMax !== undefined || endpoint.rawBody !== undefined;
  if (status === 400) return hasBody || query !== undefined;
  if (status === 401) return access.open !== true;
  if (status === 403) return access.open !== true;
  if (status === 404) return path.includes(":") || isInference(endpoint);
  if (status === 409) return idempotent === true || (hasBody && method !== "GET" && access.managementScope !== undefined);
  if (status === 413) return hasBody;
  if (status === 429) return counting !== "none" || access.open !== true;
  if (status === 500 || status === 503) return true;
  return isInference(endpoint);
}

/** Errors of an endpoint, by status; `default` for what no status here is named for. */
export const errorResponses = (endpoint: AnyEndpoint): Json => ({
  ...Object.fromEntries(statuses.filter((status) => answers(endpoint, status))
    .map((status) => [status, { $ref: `#/components/responses/${errorAnswers[status][0]}` }])),
  default: { $ref: "#/components/responses/InternalServerError" },
});

/** The header by which a request names itself, where an endpoint takes it. */
export const idempotencyParameter: Json = {
  name: idempotencyHeader, in: "header", required: false,
  description: "A name for this request, such as a UUID: repeated within 24 hours it answers the same and does nothing.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

/** Adds to a body's schema that other fields are refused, as they are. */
export const refusingOthers = (endpoint: AnyEndpoint, schema: Json): Json =>
  (isStrictObject(endpoint.rawBody ?? endpoint.body) && endpoint.body !== undefined ? { ...schema, additionalProperties: false } : schema);
