import type { infer as Inferred, ZodType } from "zod";
import { assert } from "../platform/kernel/assert.ts";
import { dayMs } from "../platform/kernel/clock.ts";
import { closestName } from "../platform/kernel/schema-problems.ts";
import type { ErrorEncoder } from "./error-envelope.ts";
import type { Answer, RequestContext } from "./request-context.ts";

/**
 * Which credentials open an endpoint. What is not named is refused. The guard gives these words
 * their meaning; here they are what OpenAPI documents.
 */
export interface AccessRule<Scope extends string = string> {
  /** LLM keys are accepted. */
  llmKey?: true;
  /** Management keys that hold this scope are accepted. */
  managementScope?: Scope;
  /**
   * Management keys and connected apps are accepted with any scopes; the handler checks the
   * scope of what is asked of it.
   */
  anyScope?: true;
  /**
   * Connected apps are refused: what they could do here would go beyond what was granted to them,
   * such as making keys.
   */
  keyHeldDirectly?: true;
  /** Sessions of people are accepted; where a scope is named, those whose role holds it. */
  session?: true;
  /**
   * Of those, operators of the service alone: people in whichever workspace they are, keys of the
   * first one.
   */
  operator?: true;
  /**
   * Tells a key about itself alone: neither `allowed_endpoints` nor the scopes of a connected app
   * keep it from asking.
   */
  ofItself?: true;
  /**
   * No credential is needed; a valid one that is accepted widens the answer, an invalid one is
   * refused.
   */
  anonymous?: true;
  /** Credentials are not looked at. */
  open?: true;
}

/** When an endpoint was announced to end, and when it does; days as `2027-01-31`. */
interface Deprecation {
  since: string;
  /** A year later at least (contract); absent while the day is open. */
  until?: string;
  /** Where the way out is described: the endpoint in its place, or a page. */
  link?: string;
}

/**
 * A window of an endpoint's own that counts requests by address, before their credential is looked
 * at.
 */
interface AddressCounting {
  perAddress: { id: string; perMinute: number };
}

/**
 * How a request is counted: at the door by plan, by the handler once it knows the model, by
 * address, or not at all.
 */
type RateCounting = "at-door" | "by-handler" | "none" | AddressCounting;

/**
 * Makes the schema of an answer. Answers are described and never checked, so their schemas are made
 * when the OpenAPI document is first asked for, and a start makes none.
 */
type AnswerSchema = () => ZodType;

/**
 * Returns a function that makes a value when it is first called, and the same one from then on. A
 * schema that has a name in the OpenAPI document is made once.
 */
export function lazily<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** What a schema of answers describes. */
export type AnswerOf<Schema extends AnswerSchema> = Inferred<ReturnType<Schema>>;

/** HTTP methods that an endpoint may answer to. */
export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/**
 * One row of the route table: everything that the router, the guard, OpenAPI and the docs need to
 * know.
 * `Dependencies` is what handlers are given, `Body` what the body schema yields, `Caller` who may
 * call it.
 */
export interface Endpoint<Dependencies, Body = unknown, Caller = unknown> {
  method: Method;
  /**
   * Path below the API base, or below the root for operational endpoints; `:name` marks a
   * parameter.
   */
  path: string;
  /** `api` is served under both `/api/v1` and `/v1`. */
  base: "api" | "root";
  /** Served below the root as well, where clients look for it that know the host alone. */
  alsoAtRoot?: true;
  access: AccessRule;
  counting: RateCounting;
  /**
   * About the person who calls and not about a workspace, so that no workspace's IP allowlist
   * applies.
   */
  anywhere?: true;
  /**
   * Described under `/.well-known/oauth-protected-resource`; its 401 answers point there (RFC 9728,
   * section 5.1).
   */
  protectedResource?: true;
  /**
   * Whether pages of any origin may call it, where `isOpenToOrigins` would say otherwise: browser
   * apps obtain credentials by it.
   */
  anyOrigin?: boolean;
  /** Largest accepted body; absent means that none is read. */
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
   * Request headers that mean something here beside the credential; read by the handler, described
   * for programs.
   */
  headers?: ZodType;
  /** Headers that answers have here beside those of every answer, and what they say. */
  answerHeaders?: Readonly<Record<string, string>>;
  /** Parsed and checked before `handle`; endpoints with a raw body only document theirs. */
  body?: ZodType<Body>;
  /**
   * Requests may carry an `Idempotency-Key`: those that repeat one are given its answer and do
   * nothing. For whole JSON answers.
   */
  idempotent?: true;
  /**
   * Nothing is changed by it, although it is no GET; changes of the account plane are written to
   * the audit log.
   */
  unaudited?: true;
  /** A request without a body means one with an empty object. */
  bodyOptional?: true;
  rawBody?: ZodType;
  /** The body as a form, where it is taken as one too (RFC 7578). */
  formBody?: ZodType;
  /** What a raw body is sent as; JSON unless it is named. */
  rawBodyType?: string;
  response?: AnswerSchema;
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
  bodiesByStatus?: Readonly<Record<number, AnswerSchema>>;
  /** Sends the browser elsewhere instead of an answer with a body. */
  redirects?: true;
  /** One event of the stream, where `otherResponseTypes` names one. */
  streamEvents?: AnswerSchema;
  /** What is answered with 202 where the work goes on. */
  accepted?: AnswerSchema;
  /** Renders errors in the dialect that this endpoint's clients speak. */
  encodeError: ErrorEncoder;
  /**
   * Answers a request; at once where there is nothing to wait for, which costs no promise (decision
   * 0038).
   */
  handle(
    context: RequestContext<Body, Caller>,
    dependencies: Dependencies,
  ): Answer | Promise<Answer>;
}

/** The request header by which a request names itself, and that of an answer given before. */
export const idempotencyHeader = "Idempotency-Key";
export const replayedHeader = "Idempotent-Replayed";

/** The path of an endpoint as callers write it, with its parameters in braces. */
export const shownPath = ({ base, path }: Pick<Endpoint<never>, "base" | "path">): string =>
  `${base === "root" ? "" : "/api/v1"}${path.replace(/:(\w+)/g, "{$1}")}`;

/**
 * Whether parameters of the query that an endpoint does not name are refused: on every route of the
 * account plane that reads. Inference and the catalog pass over them, since clients of other
 * services send some (`?beta=true`, `?client_version=`).
 */
export const takesKnownParametersOnly = ({
  base,
  method,
  access,
}: Pick<Endpoint<never>, "base" | "method" | "access">): boolean =>
  base === "api" &&
  method === "GET" &&
  (access.managementScope !== undefined || (access.session === true && !access.anonymous));

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

/**
 * Whether pages of other origins may call an endpoint from a browser, with a key and never with a
 * cookie: inference and what is only read, and what says so itself. Endpoints that take a session's
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
 * Headers of answers that pages of any origin may read, whole, as requests without credentials of
 * the browser.
 */
export const anyOrigin = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "*",
} as const;

/** What the contract promises between the announcement and the end. */
const noticeDaysMin = 365;

/**
 * `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and a `Link` to the way out, as every answer of
 * such an endpoint has them.
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
 * A path as entries of `allowed_endpoints` are compared: without base, final slash and names of
 * parameters.
 */
export const asPattern = (path: string): string =>
  path
    .replace(/^\/(?:api\/)?v1(?=\/)/, "")
    .replace(/\{\w+\}|:\w+/g, ":")
    .replace(/(?<=.)\/$/, "");

/**
 * Paths of the endpoint table as callers write them, found by any of the forms that callers use.
 */
export class EndpointPaths {
  private readonly shownByPattern: ReadonlyMap<string, string>;
  private readonly summaries: ReadonlyMap<string, string>;

  constructor(endpoints: readonly Pick<Endpoint<never>, "base" | "path" | "method" | "summary">[]) {
    this.summaries = new Map(
      endpoints.map(({ method, path, summary }) => [
        `${method} ${path}`,
        summary.replace(/\.$/, ""),
      ]),
    );
    this.shownByPattern = new Map(
      endpoints.map((endpoint) => [asPattern(endpoint.path), shownPath(endpoint)]),
    );
  }

  /**
   * The path with its base and its parameters in braces, such as `/api/v1/responses/{id}`;
   * undefined where no endpoint has it.
   */
  find(entry: string): string | undefined {
    return this.shownByPattern.get(asPattern(entry));
  }

  /**
   * What a call of an endpoint does, in words, by its method and path such as `POST /keys`;
   * undefined where there is none.
   */
  summaryOf(action: string): string | undefined {
    return this.summaries.get(action);
  }

  /** The path that a misspelt one most likely means. */
  closest(entry: string): string | undefined {
    const pattern = closestName(asPattern(entry), this.shownByPattern.keys());
    return pattern === undefined ? undefined : this.shownByPattern.get(pattern);
  }
}
