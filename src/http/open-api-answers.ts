import { brandHeader } from "../platform/lib/brand.ts";
import { idempotencyHeader, replayedHeader } from "./answer-once.ts";
import { isStrictObject } from "./check-body.ts";
import type { Endpoint } from "./endpoint.ts";

type Json = Record<string, unknown>;
type AnyEndpoint = Endpoint<never>;

/** A header of answers. */
export interface DescribedHeader {
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

/** Every header that answers may have, for the document's components. */
export const headerComponents: Json = Object.fromEntries(
  Object.entries({ ...everywhere, ...ofCounted, ...ofInference, ...ofErrors, ...ofReplays }).map(
    ([name, { description, type = "string" }]) => [name, { description, schema: { type } }],
  ),
);

/** References to headers, by name. */
export const headerReferences = (headers: Record<string, DescribedHeader>): Json =>
  Object.fromEntries(
    Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );

/** Whether an endpoint asks models, so that its answers say who served. */
export const isInference = ({ counting }: AnyEndpoint): boolean => counting === "by-handler";

/** Headers of an endpoint's successes. */
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

/** Headers of an endpoint's errors. */
export const errorHeadersOf = (endpoint: AnyEndpoint, status: number): Json =>
  headerReferences({
    ...everywhere,
    ...ofCounted,
    ...(isInference(endpoint) ? ofInference : {}),
    ...([402, 429, 503].includes(status)
      ? ofErrors
      : { "X-Should-Retry": ofErrors["X-Should-Retry"] as DescribedHeader }),
  });

/** The header by which a request names itself, where an endpoint takes it. */
export const idempotencyParameter: Json = {
  name: idempotencyHeader,
  in: "header",
  required: false,
  description:
    "A name for this request, such as a UUID: repeated within 24 hours it answers the same and does nothing.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

/** Adds to a body's schema that other fields are refused, as they are. */
export const refusingOthers = (endpoint: AnyEndpoint, schema: Json): Json =>
  isStrictObject(endpoint.rawBody ?? endpoint.body) && endpoint.body !== undefined
    ? { ...schema, additionalProperties: false }
    : schema;
