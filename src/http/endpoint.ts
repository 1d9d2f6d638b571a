import type { infer as Inferred, ZodType } from "zod";
import { assert } from "../platform/kernel/assert.ts";
import { dayMs } from "../platform/kernel/clock.ts";
import type { ErrorEncoder } from "./error-envelope.ts";
import type { RequestContext, InnerCall } from "./request-context.ts";
import type { Answer } from "./reply.ts";

/**
 * The credentials that may use an endpoint; all others are refused. The guard enforces the rule,
 * and OpenAPI documents it.
 */
export interface AccessRule<Scope extends string = string> {
  /** LLM keys are accepted. */
  llmKey?: true;
  /**
   * The answer (404) to LLM keys where SDKs for inference use the path for something that is not
   * offered, so that naming another credential would mislead; absent names the one that is needed.
   */
  llmKeysMiss?: string;
  /** Management keys that hold this scope are accepted. */
  managementScope?: Scope;
  /**
   * Management keys and connected apps are accepted with any scope; the handler checks the scope of
   * each operation.
   */
  anyScope?: true;
  /**
   * Connected apps are refused, since the endpoint could exceed what was granted to them, such as
   * by creating keys.
   */
  keyHeldDirectly?: true;
  /** Sessions of people are accepted; where a scope is named, only those whose role holds it. */
  session?: true;
  /**
   * Whether only operators of the service are accepted among these: people in any workspace, and
   * keys of the operator's workspace.
   */
  operator?: true;
  /**
   * The endpoint describes only the key itself, so neither `allowed_endpoints` nor a connected
   * app's scopes restrict it.
   */
  ofItself?: true;
  /**
   * No credential is required. A valid one that is accepted widens the answer; an invalid one is
   * refused.
   */
  anonymous?: true;
  /** A key may be in the query parameter `key`, where Google's clients write it. */
  keyInQuery?: true;
  /**
   * The door whose key a caller without a credential has, where the operator named one for it.
   */
  door?: string;
  /** Credentials are ignored. */
  open?: true;
}

/** The dates on which an endpoint was deprecated and on which it ends, such as `2027-01-31`. */
interface Deprecation {
  since: string;
  /** At least a year later (contract); absent while the date is open. */
  until?: string;
  /** The replacement: an endpoint, or a page that describes it. */
  link?: string;
}

/**
 * A window of an endpoint's own that counts requests by address, before their credential is
 * checked.
 */
interface AddressCounting {
  perAddress: { id: string; perMinute: number };
}

/**
 * The counting of a request: at the door by plan, by the handler once it knows the model, by
 * address, or not at all.
 */
type RateCounting = "at-door" | "by-handler" | "none" | AddressCounting;

/**
 * Creates the schema of an answer. Answers are documented and never checked, so their schemas are
 * created when the OpenAPI document is first requested, and not at the start.
 */
type AnswerSchema = () => ZodType;

/**
 * Returns a function that creates a value on its first call and returns the same value afterwards.
 * A schema with a name in the OpenAPI document has to be created only once.
 */
export function lazily<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** The type that an answer's schema describes. */
export type AnswerOf<Schema extends AnswerSchema> = Inferred<ReturnType<Schema>>;

/** The HTTP methods of endpoints. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * A row of the route table, with the facts that the router, the guard, OpenAPI and the docs need.
 * `Dependencies` is what handlers receive, `Body` what the body's schema yields, and `Caller` who
 * may call it.
 */
export interface Endpoint<Dependencies, Body = unknown, Caller = unknown> {
  method: Method;
  /**
   * The path below the API base, or below the root for operational endpoints. `:name` marks a
   * parameter.
   */
  path: string;
  /** `api` is served under both `/api/v1` and `/v1`. */
  base: "api" | "root";
  /**
   * Returns whether it serves a path of its pattern; the others are answered as if they had no such
   * endpoint. Absent means that it serves all.
   */
  serves?(path: string): boolean;
  /**
   * Answers the handshakes of WebSockets alone (RFC 6455); a GET without one is answered as if the
   * path had no such endpoint. The gateway may be configured to have none of them.
   */
  socket?: {
    /** The frames that clients send, and those that they receive. */
    client: AnswerSchema;
    server: AnswerSchema;
  };
  /** Also served below the root, for clients that know only the host. */
  alsoAtRoot?: true;
  /** Further full paths under which it answers, which documents do not list. */
  alsoAt?: readonly string[];
  access: AccessRule;
  counting: RateCounting;
  /** Concerns the calling person and no workspace, so that no workspace's IP allowlist applies. */
  anywhere?: true;
  /**
   * Described under `/.well-known/oauth-protected-resource`, which its 401 answers point to (RFC
   * 9728, section 5.1).
   */
  protectedResource?: true;
  /**
   * Whether pages of any origin may call it, where `isOpenToOrigins` would decide otherwise:
   * browser apps obtain credentials through it.
   */
  anyOrigin?: boolean;
  /** The largest accepted body, in bytes; absent means that none is read. */
  bodyBytesMax?: number;
  summary: string;
  description?: string;
  tag: string;
  /**
   * Sends `Deprecation`, `Sunset` and `Link` with every answer, and marks the operation in OpenAPI.
   */
  deprecated?: Deprecation;
  query?: ZodType;
  /**
   * Request headers that have a meaning here beside the credential. The handler reads them; the
   * schema documents them.
   */
  headers?: ZodType;
  /** Response headers beside those of every answer, with their descriptions. */
  answerHeaders?: Readonly<Record<string, string>>;
  /** Parsed and checked before `handle`. Endpoints with a raw body only document theirs. */
  body?: ZodType<Body>;
  /**
   * Requests may carry an `Idempotency-Key`: a repetition receives the first answer and does
   * nothing. For whole JSON answers.
   */
  idempotent?: true;
  /**
   * Changes nothing although it is not a GET. Other changes of the account plane are written to the
   * audit log.
   */
  unaudited?: true;
  /** Refuses every request, to answer in the form of a dialect's clients; documents leave it out. */
  refuses?: true;
  /** A request without a body counts as one with an empty object. */
  bodyOptional?: true;
  rawBody?: ZodType;
  /** The body as a form, where forms are accepted too (RFC 7578). */
  formBody?: ZodType;
  /** The media type of a raw body; JSON where absent. */
  rawBodyType?: string;
  response?: AnswerSchema;
  /** Further media types of a success, beside JSON: tables, pages, event streams. */
  otherResponseTypes?: readonly (
    | "text/csv"
    | "text/event-stream"
    | "text/html"
    | "text/markdown"
    | "text/plain"
    | "text/javascript"
    | "image/svg+xml"
    | "application/zip"
    | "application/yaml"
    | "application/octet-stream"
    | "application/atom+xml"
    | "audio/*"
  )[];
  /** Bodies of statuses that are neither a success nor an error envelope. */
  bodiesByStatus?: Readonly<Record<number, AnswerSchema>>;
  /** The status of a success, where it is not 200. */
  successStatus?: 201;
  /** Meanings of further statuses that are no error envelope, such as those of ranges. */
  furtherAnswers?: Readonly<Record<number, string>>;
  /** Redirects the browser instead of returning a body. */
  redirects?: true;
  /** An event of the stream, where `otherResponseTypes` names one. */
  streamEvents?: AnswerSchema;
  /** The answer with status 202, while work continues. */
  accepted?: AnswerSchema;
  /** Renders errors in the dialect of this endpoint's clients. */
  encodeError: ErrorEncoder;
  /**
   * Answers a request. Returns without a promise where there is nothing to wait for (decision
   * 0038).
   */
  handle(
    context: RequestContext<Body, Caller>,
    dependencies: Dependencies,
  ): Answer | Promise<Answer>;
}

/**
 * Decides who may use an endpoint, and wraps its handler. The router knows nothing of credentials.
 */
export interface RouterGuard<Caller> {
  /** The caller of a request whose credential was not checked yet. */
  readonly unknownCaller: Caller;
  /**
   * Finds the caller of a request and admits it, or throws the `GatewayError` that refuses it.
   * Returns undefined where nothing had to be waited for, as with every key, so that no promise is
   * created.
   */
  admit(
    endpoint: Endpoint<never>,
    context: RequestContext<unknown, Caller>,
  ): Promise<void> | undefined;
  /** Does the same for a call from one endpoint to another. */
  admitInner(
    endpoint: Endpoint<never>,
    context: RequestContext<unknown, Caller>,
    call: InnerCall<Caller>,
  ): Promise<void> | undefined;
  /** Admits a caller to an endpoint without its secret, which must be a live credential. */
  admitCaller(
    endpoint: Endpoint<never>,
    context: RequestContext<unknown, Caller>,
    caller: Caller,
  ): Promise<void> | undefined;
  /**
   * Runs an endpoint's handler with what has to happen before and after it; without a promise where
   * the endpoint needs none.
   */
  around(
    endpoint: Endpoint<never>,
    work: (context: RequestContext<unknown, Caller>) => Answer | Promise<Answer>,
  ): (context: RequestContext<unknown, Caller>, bodyText: string) => Answer | Promise<Answer>;
  /** Returns the headers of a caller's rate window, for answers given before counting. */
  windowHeaders(caller: Caller): Record<string, string>;
}

/** The request header of an idempotency key, and the response header of a repeated answer. */
export const idempotencyHeader = "Idempotency-Key";
export const replayedHeader = "Idempotent-Replayed";

/** Returns the path of an endpoint as callers write it, with its parameters in braces. */
export const shownPath = ({ base, path }: Pick<Endpoint<never>, "base" | "path">): string =>
  `${base === "root" ? "" : "/api/v1"}${path.replace(/:(\w+)/g, "{$1}")}`;

/**
 * Returns whether unknown query parameters are refused: on every reading route of the account
 * plane. Inference and the catalog ignore them, since clients of other services send some
 * (`?beta=true`, `?client_version=`).
 */
export const takesKnownParametersOnly = ({
  base,
  method,
  access,
}: Pick<Endpoint<never>, "base" | "method" | "access">): boolean =>
  base === "api" &&
  method === "GET" &&
  (access.managementScope !== undefined || (access.session === true && !access.anonymous));

/** Returns the full paths under which an endpoint answers. */
export const pathsOf = ({
  base,
  path,
  alsoAtRoot,
  alsoAt = [],
}: {
  base: "api" | "root";
  path: string;
  alsoAtRoot?: true;
  alsoAt?: readonly string[];
}): string[] => [
  ...(base === "root" ? [path] : [`/api/v1${path}`, `/v1${path}`, ...(alsoAtRoot ? [path] : [])]),
  ...alsoAt,
];

/**
 * Returns whether pages of other origins may call an endpoint from a browser, with a key and never
 * with a cookie: inference, reads, and endpoints that declare it. Endpoints that take a session's
 * cookie are for pages of this service alone.
 */
export const isOpenToOrigins = ({
  access,
  base,
  method,
  anyOrigin: saysSo,
}: Pick<Endpoint<never>, "access" | "base" | "method" | "anyOrigin">): boolean =>
  saysSo ??
  (access.session === undefined &&
    (access.llmKey === true || (base === "api" && method === "GET")));

/**
 * The headers of answers that pages of any origin may read in full, when requested without the
 * browser's credentials.
 */
export const anyOrigin = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "*",
} as const;

/** The days that the contract promises between a deprecation and the end. */
const noticeDaysMin = 365;

/**
 * Returns the headers of a deprecated endpoint's answers: `Deprecation` (RFC 9745), `Sunset` (RFC
 * 8594), and a `Link` to the replacement.
 */
export function deprecationHeaders({ since, until, link }: Deprecation): Record<string, string> {
  const sinceMs = Date.parse(`${since}T00:00:00Z`);
  const headers: Record<string, string> = { deprecation: `@${sinceMs / 1000}` };
  if (until !== undefined) {
    const untilMs = Date.parse(`${until}T00:00:00Z`);
    assert(
      untilMs - sinceMs >= noticeDaysMin * dayMs,
      `an endpoint that is deprecated since ${since} ends a year later at the earliest`,
    );
    headers["sunset"] = new Date(untilMs).toUTCString();
  }
  if (link !== undefined) headers["link"] = `<${link}>; rel="deprecation"`;
  return headers;
}

/**
 * Normalises a path for comparison with entries of `allowed_endpoints`: without base, final slash
 * and names of parameters.
 */
export const asPattern = (path: string): string =>
  path
    .replace(/^\/(?:api\/)?v1(?=\/)/, "")
    .replace(/\{\w+\}|:\w+/g, ":")
    .replace(/(?<=.)\/$/, "");
