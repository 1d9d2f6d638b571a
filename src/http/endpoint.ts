import type { ZodType } from "zod";
import type { Scope } from "../account/keys/scopes.ts";
import type { RateTier } from "../account/limits/rate-tier.ts";
import type { ErrorEncoder } from "./error-envelope.ts";
import type { RequestContext } from "./request-context.ts";
import type { Answer } from "./reply.ts";

/** Which credentials open an endpoint. What is not named is refused. */
export interface AccessRule {
  /** LLM keys are accepted. */
  llmKey?: true;
  /** Management keys that hold this scope are accepted. */
  managementScope?: Scope;
  /** Management keys and connected apps are accepted whatever their scopes; the handler checks the scope of what is asked of it. */
  anyScope?: true;
  /** Connected apps are refused: what they could do here would go beyond what was granted to them, such as making keys. */
  keyHeldDirectly?: true;
  /** Sessions of people are accepted; where a scope is named, those whose role holds it. */
  session?: true;
  /** Of those, operators of the service alone: people in whichever workspace they are, keys of the first one. */
  operator?: true;
  /** Tells a key about itself alone: neither `allowed_endpoints` nor the scopes of a connected app keep it from asking. */
  ofItself?: true;
  /** No credential is needed; a valid one that is accepted widens the answer, an invalid one is refused. */
  anonymous?: true;
  /** Credentials are not looked at. */
  open?: true;
}

/** When an endpoint was announced to end, and when it does; days as `2027-01-31`. */
export interface Deprecation {
  since: string;
  /** A year later at least (contract); absent while the day is open. */
  until?: string;
  /** Where the way out is described: the endpoint in its place, or a page. */
  link?: string;
}

/** A window of an endpoint's own that counts requests by address, before their credential is looked at. */
export interface AddressCounting {
  perAddress: RateTier;
}

/** How a request is counted: at the door by plan, by the handler once it knows the model, by address, or not at all. */
export type RateCounting = "at-door" | "by-handler" | "none" | AddressCounting;

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/**
 * One row of the route table: everything that the router, the guard, OpenAPI and the docs need to know.
 * `Dependencies` is what handlers are given, `Body` what the body schema yields.
 */
export interface Endpoint<Dependencies, Body = unknown> {
  method: Method;
  /** Path below the API base, or below the root for operational endpoints; `:name` marks a parameter. */
  path: string;
  /** `api` is served under both `/api/v1` and `/v1`. */
  base: "api" | "root";
  /** Served below the root as well, where clients look for it that know the host alone. */
  alsoAtRoot?: true;
  access: AccessRule;
  counting: RateCounting;
  /** About the person who calls and not about a workspace, so that no workspace's IP allowlist keeps anybody from it. */
  anywhere?: true;
  /** Described under `/.well-known/oauth-protected-resource`; its 401 answers point there (RFC 9728, section 5.1). */
  protectedResource?: true;
  /** Whether pages of any origin may call it, where `isOpenToOrigins` would say otherwise: browser apps obtain credentials by it. */
  anyOrigin?: boolean;
  /** Largest accepted body; absent means that none is read. */
  bodyBytesMax?: number;
  summary: string;
  description?: string;
  tag: string;
  /** Sends `Deprecation`, `Sunset` and `Link` with every answer, and marks the operation in OpenAPI. */
  deprecated?: Deprecation;
  query?: ZodType;
  /** Request headers that mean something here beside the credential; read by the handler, described for programs. */
  headers?: ZodType;
  /** Headers that answers have here beside those of every answer, and what they say. */
  answerHeaders?: Readonly<Record<string, string>>;
  /** Parsed and checked before `handle`; endpoints with a raw body only document theirs. */
  body?: ZodType<Body>;
  /** Requests may carry an `Idempotency-Key`: those that repeat one are given its answer and do nothing. For whole JSON answers. */
  idempotent?: true;
  /** Nothing is changed by it, although it is no GET; changes of the account plane are written to the audit log. */
  unaudited?: true;
  /** A request without a body means one with an empty object. */
  bodyOptional?: true;
  rawBody?: ZodType;
  /** The body as a form, where it is taken as one too (RFC 7578). */
  formBody?: ZodType;
  /** What a raw body is sent as; JSON unless it is named. */
  rawBodyType?: string;
  response?: ZodType;
  /** What else a success may be sent as beside JSON: tables, pages, streams of events. */
  otherResponseTypes?: readonly (
    | "text/csv"
    | "text/event-stream"
    | "text/html"
    | "text/markdown"
    | "text/plain"
    | "text/javascript"
    | "image/svg+xml"
    | "application/zip"
    | "application/atom+xml"
  )[];
  /** Bodies of statuses that are neither a success nor an error envelope. */
  bodiesByStatus?: Readonly<Record<number, ZodType>>;
  /** Sends the browser elsewhere instead of an answer with a body. */
  redirects?: true;
  /** One event of the stream, where `otherResponseTypes` names one. */
  streamEvents?: ZodType;
  /** What is answered with 202 where the work goes on. */
  accepted?: ZodType;
  /** Renders errors in the dialect that this endpoint's clients speak. */
  encodeError: ErrorEncoder;
  handle(context: RequestContext<Body>, dependencies: Dependencies): Answer | Promise<Answer>;
}

/**
 * Declares an endpoint; the table in `endpoints/index.ts` lists them all. The type of the body matters
 * inside the endpoint only: its schema and its handler meet nowhere else.
 */
export const defineEndpoint = <Dependencies, Body = undefined>(
  endpoint: Endpoint<Dependencies, Body>,
): Endpoint<Dependencies> => endpoint as unknown as Endpoint<Dependencies>;

/** The path of an endpoint as callers write it, with its parameters in braces. */
export const shownPath = ({ base, path }: Pick<Endpoint<never>, "base" | "path">): string =>
  `${base === "root" ? "" : "/api/v1"}${path.replace(/:(\w+)/g, "{$1}")}`;

/**
 * Whether parameters of the query that an endpoint does not name are refused: on every route of the account plane that reads.
 * Inference and the catalog pass over them, since clients of other services send some (`?beta=true`, `?client_version=`).
 */
export const takesKnownParametersOnly = ({
  base,
  method,
  access,
}: Pick<Endpoint<never>, "base" | "method" | "access">): boolean =>
  base === "api" &&
  method === "GET" &&
  (access.managementScope !== undefined || access.session === true);

/** Full paths under which an endpoint answers. */
export const pathsOf = ({
  base,
  path,
  alsoAtRoot,
}: {
  base: "api" | "root";
  path: string;
  alsoAtRoot?: true;
}): string[] =>
  base === "root" ? [path] : [`/api/v1${path}`, `/v1${path}`, ...(alsoAtRoot ? [path] : [])];
