import type { CredentialDirectory } from "../account/keys/credential-directory.ts";
import type { IdempotentAnswers } from "../account/idempotency/idempotent-answers.ts";
import { requireOperator } from "../account/people/operator.ts";
import type { Security } from "../account/security/open-security.ts";
import type { Clock } from "../platform/lib/clock.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { timeOrderedHex } from "../platform/lib/ids.ts";
import { answerOnce } from "./answer-once.ts";
import { auditChange, isAudited, type Auditing } from "./audit-change.ts";
import { authenticate } from "./authenticate.ts";
import { checkAddress } from "./check-address.ts";
import { countRequest, describeWindow, type RateCounters } from "./count-request.ts";
import { anyOrigin, isOpenToOrigins } from "./cross-origin.ts";
import { pathsOf, takesKnownParametersOnly, type Endpoint, type Method } from "./endpoint.ts";
import { deprecationHeaders } from "./deprecation-headers.ts";
import { asGatewayError, encodeContractError, errorHeaders, type ErrorEncoder } from "./error-envelope.ts";
import { parseJsonObject, readJsonText } from "./read-body.ts";
import { admitSession, decidingCookie, type SessionDoor } from "./session-door.ts";
import { RequestContext } from "./request-context.ts";
import { pathOf } from "./request-target.ts";
import { checkBody, refuseUnknownFields, refuseUnknownParameters } from "./check-body.ts";
import type { ServedRequest } from "./http-request.ts";
import type { CompiledRoutes, RouteHandler } from "./http-server.ts";
import { Reply, type Answer } from "./reply.ts";

/** What the router itself needs; handlers get their own dependencies. */
export interface RouterOptions<Dependencies> {
  endpoints: readonly Endpoint<Dependencies>[];
  dependencies: Dependencies;
  directory: CredentialDirectory;
  counters: RateCounters;
  clock: Clock;
  security: Security;
  sessions: SessionDoor;
  /** The workspace whose management keys are operators'. */
  operatorWorkspaceId: string;
  /** The address that anonymous requests are counted by, and that allowlists and the audit log look at. */
  clientAddress(request: ServedRequest): string;
  /** Told of every refused or failed request, for logs and metrics. */
  onError(error: GatewayError, context: { traceId: string; method: string; path: string }): void;
  /** Answers of requests that name themselves. */
  idempotentAnswers: IdempotentAnswers;
  /** Told when such an answer could not be kept. */
  onAnswerError(error: unknown): void;
  /** Told when the outcome of a change could not be written to the audit log. */
  onAuditError(error: unknown): void;
  /** Told when an endpoint begins to work on a request. */
  onBegin(): void;
  /** Told of every answer; `settled` when its settlement counts it, as it does for served inference. */
  onEnd(answer: { path: string; status: number; settled: boolean }): void;
}

/** The endpoints of one path by method. */
type PathMethods<Dependencies> = Map<Method, { endpoint: Endpoint<Dependencies>; handler: RouteHandler }>;

/** Compiles the endpoint table into the server's routes and the handler for everything that is not in it. */
export function compileRoutes<Dependencies>(options: RouterOptions<Dependencies>): {
  routes: CompiledRoutes;
  fallback: RouteHandler;
} {
  const paths = new Map<string, PathMethods<Dependencies>>();
  for (const endpoint of options.endpoints) {
    const handler = compileEndpoint(endpoint, options);
    for (const path of pathsOf(endpoint)) {
      const methods = paths.get(path) ?? new Map();
      paths.set(path, methods.set(endpoint.method, { endpoint, handler }));
    }
  }
  const routes: Record<string, RouteHandler> = {};
  for (const [path, methods] of paths) {
    const handler = compilePath(methods, options);
    routes[path] = handler;
    // Programs that join a base URL and a path carelessly end with a slash.
    if (methods.get("POST")?.endpoint.access.llmKey === true) routes[`${path}/`] = handler;
  }
  return { routes, fallback: compileFallback(options) };
}

/** The handler of a path for every method: HEAD is answered as GET is, without the body (RFC 9110, 9.3.2). */
function compilePath<Dependencies>(methods: PathMethods<Dependencies>, options: RouterOptions<Dependencies>): RouteHandler {
  const byMethod = new Map<string, RouteHandler>([...methods].map(([method, { handler }]) => [method, handler]));
  const get = byMethod.get("GET");
  if (get !== undefined) byMethod.set("HEAD", get);
  const shared = [...methods.values()].filter(({ endpoint }) => isOpenToOrigins(endpoint)).map(({ endpoint }) => endpoint.method);
  if (shared.length > 0) byMethod.set("OPTIONS", (request) => preflight(newContext(request, options), shared));
  const [first] = methods.values();
  const encodeError = first?.endpoint.encodeError ?? encodeContractError;
  const allow = [...methods.keys()].join(", ");
  const refuse: RouteHandler = (request) => refuseMethod(newContext(request, options), { options, encodeError, allow });
  const handle: RouteHandler = (request) => (byMethod.get(request.method) ?? refuse)(request);
  return soundly(handle, { options, encodeError });
}

/** The host of a request is one, names no user and holds nothing that ends a name (RFC 9112, 3.2; RFC 3986, 3.2.2). */
const soundHost = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/i;

/** Why a request is refused although the platform takes it: another reader on the way could see another request in it. */
function faultOf({ headers, url }: ServedRequest): string | undefined {
  const host = headers.get("host");
  if (host !== null && !soundHost.test(host)) return "The header host is not one host.";
  if (headers.get("content-length")?.includes(",")) return "The header content-length came twice.";
  const expectation = headers.get("expect");
  if (expectation !== null && expectation.toLowerCase() !== "100-continue") {
    return "The header expect asks for something other than 100-continue.";
  }
  return url.startsWith("/") || url.includes("://") ? undefined : "The request's target is no path.";
}

/** The handler, for requests that every reader understands alike; after another one the connection ends. */
function soundly<Dependencies>(
  handle: RouteHandler, { options, encodeError }: { options: RouterOptions<Dependencies>; encodeError: ErrorEncoder },
): RouteHandler {
  return (request) => {
    const fault = faultOf(request);
    if (fault === undefined) return handle(request);
    request.closes = true;
    return errorResponse(new GatewayError("bad_request", fault), { context: newContext(request, options), options, encodeError });
  };
}

/** Answers a browser's question whether pages of other origins may send a request (Fetch, "CORS protocol"). */
function preflight({ request, headers }: RequestContext, methods: readonly string[]): Reply {
  const wanted = request.headers.get("access-control-request-headers");
  return new Reply("", {
    status: 204,
    headers: {
      ...headers, ...anyOrigin, "access-control-allow-methods": methods.join(", "), "access-control-max-age": "86400",
      vary: "access-control-request-headers",
      ...(wanted !== null && headerNames.test(wanted) ? { "access-control-allow-headers": wanted } : {}),
    },
  });
}

const headerNames = /^[\w\-, ]{1,2048}$/;

function newContext<Dependencies>(request: ServedRequest, options: RouterOptions<Dependencies>): RequestContext {
  const { clock } = options;
  return new RequestContext({
    request, traceId: timeOrderedHex(clock.nowMs()), startedMs: clock.monotonicMs(), caller: { kind: "anonymous", address: "" },
    addressOf: options.clientAddress,
  });
}

function compileEndpoint<Dependencies>(endpoint: Endpoint<Dependencies>, options: RouterOptions<Dependencies>): RouteHandler {
  const isInference = endpoint.counting === "by-handler";
  const checksQuery = takesKnownParametersOnly(endpoint);
  const deprecation = endpoint.deprecated && deprecationHeaders(endpoint.deprecated);
  const auditing = isAudited(endpoint) ? auditingOf(options) : undefined;
  const once = (sent: { bodyText: string; context: RequestContext }, work: () => Promise<Answer>): Promise<Answer> => (endpoint.idempotent
    ? answerOnce(options.idempotentAnswers, { ...sent, onError: (error) => options.onAnswerError(error) }, work)
    : work());
  const isShared = isOpenToOrigins(endpoint);
  return async (request) => {
    const context = newContext(request, options);
    if (isShared) Object.assign(context.headers, anyOrigin);
    if (deprecation !== undefined) Object.assign(context.headers, deprecation);
    options.onBegin();
    let status = 200;
    try {
      const arriving = admit(endpoint, { context, options });
      if (arriving !== undefined) await arriving;
      if (checksQuery) refuseUnknownParameters(endpoint.query, context.query);
      const bodyText = endpoint.body === undefined ? "" : await readChecked(endpoint, context);
      const response = await (auditing === undefined
        ? endpoint.handle(context, options.dependencies)
        : once({ bodyText, context }, () => auditChange(
          auditing, { endpoint, context }, () => endpoint.handle(context, options.dependencies),
        )));
      status = response.status;
      return response;
    } catch (thrown) {
      const response = errorResponse(thrown, { context, options, encodeError: endpoint.encodeError });
      status = response.status;
      return response;
    } finally {
      options.onEnd({ path: endpoint.path, status, settled: (context.settled ?? isInference) && status < 400 });
    }
  };
}

/** Reads the body and checks it; gives its text. */
async function readChecked<Dependencies>(endpoint: Endpoint<Dependencies>, context: RequestContext): Promise<string> {
  const text = await readJsonText(context.request, endpoint.bodyBytesMax ?? 0);
  if (endpoint.body === undefined) return text;
  const fields = endpoint.bodyOptional && text === "" ? {} : parseJsonObject(text);
  refuseUnknownFields(endpoint.body, fields);
  context.body = checkBody(endpoint.body, fields);
  return text;
}

const auditingOf = <Dependencies>(options: RouterOptions<Dependencies>): Auditing => ({
  log: options.security.auditLog,
  operatorWorkspaceId: options.operatorWorkspaceId,
  onError: (error) => options.onAuditError(error),
});

interface Arrival<Dependencies> {
  context: RequestContext;
  options: RouterOptions<Dependencies>;
}

/** The guard: credential and scope, then what holds for every caller. Sessions and shared windows are waited for; keys are in memory. */
function admit<Dependencies>(endpoint: Endpoint<Dependencies>, arrival: Arrival<Dependencies>): Promise<void> | undefined {
  const { context, options } = arrival;
  const { request } = context;
  const { access } = endpoint;
  const cookie = decidingCookie(request.headers, access);
  if (cookie !== undefined) {
    return admitSession(options.sessions, { request, cookie, access, nowMs: options.clock.nowMs() }).then((caller) => {
      context.caller = caller;
      return enter(endpoint, arrival);
    });
  }
  context.caller = authenticate({
    headers: request.headers, endpoint, directory: options.directory, nowMs: options.clock.nowMs(), context,
  });
  return enter(endpoint, arrival);
}

/** What holds for every caller: allowed addresses and, where the door counts, the rate window. */
function enter<Dependencies>(endpoint: Endpoint<Dependencies>, { context, options }: Arrival<Dependencies>): Promise<void> | undefined {
  if (!endpoint.anywhere) checkAddress(options.security.allowlist, context);
  if (endpoint.access.operator) requireOperator(context.caller, options.operatorWorkspaceId);
  const { caller } = context;
  if (caller.kind !== "anonymous" && caller.kind !== "session") options.directory.uses.note(caller.key.id, options.clock.nowMs());
  if (endpoint.counting === "none") Object.assign(context.headers, describeWindow(options.counters, caller));
  if (endpoint.counting !== "at-door") return undefined;
  return countRequest(options.counters, { caller: context.caller, rateClass: "account", headers: context.headers });
}

function errorResponse<Dependencies>(
  thrown: unknown,
  { context, options, encodeError }: { context: RequestContext; options: RouterOptions<Dependencies>; encodeError: ErrorEncoder },
): Answer {
  const error = asGatewayError(thrown);
  options.onError(error, { traceId: context.traceId, method: context.request.method, path: pathOf(context.request) });
  if (!("x-ratelimit-limit" in context.headers)) Object.assign(context.headers, describeWindow(options.counters, context.caller));
  return context.json(encodeError(error, { traceId: context.traceId }), { status: error.status, headers: errorHeaders(error) });
}

/** The longest of the paths that a path lies below: whoever asks there speaks that endpoint's dialect. */
function nearest(paths: Iterable<string>, path: string): string | undefined {
  let found: string | undefined;
  for (const candidate of paths) {
    if (path.startsWith(`${candidate}/`) && candidate.length > (found?.length ?? 0)) found = candidate;
  }
  return found;
}

/**
 * Whether a client would rather speak over a WebSocket. Codex (0.169) goes on over HTTP at once when it
 * reads 426, and after six seconds of tries when it reads 404 or 405.
 */
const asksForWebSocket = ({ headers }: ServedRequest): boolean => headers.get("upgrade")?.toLowerCase() === "websocket";

const noWebSockets = "This endpoint does not speak over WebSockets. Send the request as HTTP, with stream: true for events.";

function refuseMethod<Dependencies>(
  context: RequestContext,
  { options, encodeError, allow }: { options: RouterOptions<Dependencies>; encodeError: ErrorEncoder; allow: string },
): Answer {
  const { request } = context;
  if (asksForWebSocket(request)) {
    // RFC 9110 section 15.5.22 wants to be told which protocol is spoken.
    context.headers["upgrade"] = "HTTP/1.1";
    return errorResponse(new GatewayError("upgrade_required", noWebSockets), { context, options, encodeError });
  }
  context.headers["allow"] = allow;
  const error = new GatewayError("method_not_allowed", `${pathOf(request)} does not take ${request.method}; it takes ${allow}.`);
  return errorResponse(error, { context, options, encodeError });
}

function compileFallback<Dependencies>(options: RouterOptions<Dependencies>): RouteHandler {
  const encoders = new Map<string, ErrorEncoder>();
  for (const endpoint of options.endpoints) {
    for (const path of pathsOf(endpoint)) encoders.set(path, endpoint.encodeError);
  }
  const handle: RouteHandler = (request) => {
    const context = newContext(request, options);
    const path = pathOf(request);
    const encodeError = encoders.get(nearest(encoders.keys(), path) ?? "") ?? encodeContractError;
    const error = new GatewayError("not_found", `There is no endpoint ${request.method} ${path}. The list is at /docs.`);
    return errorResponse(error, { context, options, encodeError });
  };
  return soundly(handle, { options, encodeError: encodeContractError });
}
