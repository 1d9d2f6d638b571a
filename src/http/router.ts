import { assert } from "../platform/lib/assert.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { answerOnce } from "./answer-once.ts";
import { auditChange, isAudited, type Auditing } from "./audit-change.ts";
import { authenticate } from "./authenticate.ts";
import { anyOrigin, isOpenToOrigins } from "./cross-origin.ts";
import { admit, checkPlace } from "./door.ts";
import { pathsOf, takesKnownParametersOnly, type Endpoint, type Method } from "./endpoint.ts";
import { deprecationHeaders } from "./deprecation-headers.ts";
import { encodeContractError, type ErrorEncoder } from "./error-envelope.ts";
import { errorResponse } from "./error-response.ts";
import { parseJsonObject, readJsonText } from "./read-body.ts";
import { innerAnswer, innerRequest, type InnerAnswer, type InnerCall } from "./inner-call.ts";
import type { RequestContext } from "./request-context.ts";
import { pathOf } from "./request-target.ts";
import { newContext, type Compiling, type RouterOptions } from "./router-options.ts";
import { checkBody, refuseUnknownFields, refuseUnknownParameters } from "./check-body.ts";
import type { ServedRequest } from "./http-request.ts";
import type { CompiledRoutes, RouteHandler } from "./http-server.ts";
import { Reply, type Answer } from "./reply.ts";

/** An endpoint with what was compiled of it. */
interface CompiledEndpoint<Dependencies> {
  endpoint: Endpoint<Dependencies>;
  handler: RouteHandler;
  /** Does what an admitted request asks. */
  work(context: RequestContext): Promise<Answer>;
}

/** The endpoints of one path by method. */
type PathMethods<Dependencies> = Map<Method, CompiledEndpoint<Dependencies>>;

/** Compiles the endpoint table into the server's routes and the handler for everything that is not in it. */
export function compileRoutes<Dependencies>(given: RouterOptions<Dependencies>): {
  routes: CompiledRoutes;
  fallback: RouteHandler;
} {
  const paths = new Map<string, PathMethods<Dependencies>>();
  const byName = new Map<string, CompiledEndpoint<Dependencies>>();
  const options: Compiling<Dependencies> = {
    ...given,
    source: {
      addressOf: given.clientAddress,
      isEncrypted: given.isEncrypted,
      ask: (context, call) => askInner(context, { call, byName, options }),
    },
  };
  for (const endpoint of options.endpoints) {
    const compiled = compileEndpoint(endpoint, options);
    if (endpoint.base === "api") byName.set(`${endpoint.method} ${endpoint.path}`, compiled);
    for (const path of pathsOf(endpoint)) {
      const methods = paths.get(path) ?? new Map();
      paths.set(path, methods.set(endpoint.method, compiled));
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
function compilePath<Dependencies>(
  methods: PathMethods<Dependencies>,
  options: Compiling<Dependencies>,
): RouteHandler {
  const byMethod = new Map<string, RouteHandler>(
    [...methods].map(([method, { handler }]) => [method, handler]),
  );
  const get = byMethod.get("GET");
  if (get !== undefined) byMethod.set("HEAD", get);
  const shared = [...methods.values()]
    .filter(({ endpoint }) => isOpenToOrigins(endpoint))
    .map(({ endpoint }) => endpoint.method);
  if (shared.length > 0)
    byMethod.set("OPTIONS", (request) => preflight(newContext(request, options), shared));
  const [first] = methods.values();
  const encodeError = first?.endpoint.encodeError ?? encodeContractError;
  const allow = [...methods.keys()].join(", ");
  const refuse: RouteHandler = (request) =>
    refuseMethod(newContext(request, options), { options, encodeError, allow });
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
  return url.startsWith("/") || url.includes("://")
    ? undefined
    : "The request's target is no path.";
}

/** The handler, for requests that every reader understands alike; after another one the connection ends. */
function soundly<Dependencies>(
  handle: RouteHandler,
  { options, encodeError }: { options: Compiling<Dependencies>; encodeError: ErrorEncoder },
): RouteHandler {
  return (request) => {
    const fault = faultOf(request);
    if (fault === undefined) return handle(request);
    request.closes = true;
    return errorResponse(new GatewayError("bad_request", fault), {
      context: newContext(request, options),
      options,
      encodeError,
    });
  };
}

/** Answers a browser's question whether pages of other origins may send a request (Fetch, "CORS protocol"). */
function preflight({ request, headers }: RequestContext, methods: readonly string[]): Reply {
  const wanted = request.headers.get("access-control-request-headers");
  return new Reply("", {
    status: 204,
    headers: {
      ...headers,
      ...anyOrigin,
      "access-control-allow-methods": methods.join(", "),
      "access-control-max-age": "86400",
      vary: "access-control-request-headers",
      ...(wanted !== null && headerNames.test(wanted)
        ? { "access-control-allow-headers": wanted }
        : {}),
    },
  });
}

const headerNames = /^[\w\-, ]{1,2048}$/;

function compileEndpoint<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  options: Compiling<Dependencies>,
): CompiledEndpoint<Dependencies> {
  const isInference = endpoint.counting === "by-handler";
  const deprecation = endpoint.deprecated && deprecationHeaders(endpoint.deprecated);
  const work = compileWork(endpoint, options);
  const isShared = isOpenToOrigins(endpoint);
  const handler: RouteHandler = async (request) => {
    const context = newContext(request, options);
    if (isShared) Object.assign(context.headers, anyOrigin);
    if (deprecation !== undefined) Object.assign(context.headers, deprecation);
    options.onBegin();
    let status = 200;
    try {
      const arriving = admit(endpoint, { context, options });
      if (arriving !== undefined) await arriving;
      const response = await work(context);
      status = response.status;
      return response;
    } catch (thrown) {
      const response = errorResponse(thrown, {
        context,
        options,
        encodeError: endpoint.encodeError,
        endpoint,
      });
      status = response.status;
      return response;
    } finally {
      options.onEnd({
        path: endpoint.path,
        status,
        settled: (context.settled ?? isInference) && status < 400,
      });
    }
  };
  return { endpoint, handler, work };
}

/** What an endpoint does with an admitted request: its query and body are checked, changes are audited, repetitions answered. */
function compileWork<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  options: Compiling<Dependencies>,
): CompiledEndpoint<Dependencies>["work"] {
  const checksQuery = takesKnownParametersOnly(endpoint);
  const auditing = isAudited(endpoint) ? auditingOf(options) : undefined;
  const handle = (context: RequestContext): Answer | Promise<Answer> =>
    endpoint.handle(context, options.dependencies);
  const change =
    auditing === undefined
      ? handle
      : (context: RequestContext) =>
          auditChange(auditing, { endpoint, context }, () => handle(context));
  return async (context) => {
    if (checksQuery) refuseUnknownParameters(endpoint.query, context.query);
    const bodyText = endpoint.body === undefined ? "" : await readChecked(endpoint, context);
    if (!endpoint.idempotent) return await change(context);
    const sent = { context, bodyText, onError: (error: unknown) => options.onAnswerError(error) };
    return await answerOnce(options.idempotentAnswers, sent, async () => await change(context));
  };
}

/** Calls an endpoint for the client of another request. The rate windows of endpoints do not count what stays inside. */
async function askInner<Dependencies>(
  from: RequestContext,
  {
    call,
    byName,
    options,
  }: {
    call: InnerCall;
    byName: ReadonlyMap<string, CompiledEndpoint<Dependencies>>;
    options: Compiling<Dependencies>;
  },
): Promise<InnerAnswer> {
  const compiled = byName.get(call.endpoint);
  assert(compiled !== undefined, `there is no endpoint ${call.endpoint}`);
  const { endpoint, work } = compiled;
  const request = innerRequest(from.request, call);
  const context = newContext(request, options, from.traceId);
  try {
    context.caller =
      call.operator !== undefined && endpoint.access.operator
        ? call.operator
        : authenticate({
            headers: request.headers,
            endpoint,
            directory: options.directory,
            nowMs: options.clock.nowMs(),
            context,
          });
    checkPlace(endpoint, { context, options });
    return await innerAnswer(await work(context));
  } finally {
    request.hold.release();
  }
}

/** Reads the body and checks it; gives its text. */
async function readChecked<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  context: RequestContext,
): Promise<string> {
  const text = await readJsonText(context.request, endpoint.bodyBytesMax ?? 0);
  if (endpoint.body === undefined) return text;
  const fields = endpoint.bodyOptional && text === "" ? {} : parseJsonObject(text);
  refuseUnknownFields(endpoint.body, fields);
  context.body = checkBody(endpoint.body, fields);
  return text;
}

const auditingOf = <Dependencies>(options: Compiling<Dependencies>): Auditing => ({
  log: options.security.auditLog,
  operatorWorkspaceId: options.operatorWorkspaceId,
  onError: (error) => options.onAuditError(error),
});

/** The longest of the paths that a path lies below: whoever asks there speaks that endpoint's dialect. */
function nearest(paths: Iterable<string>, path: string): string | undefined {
  let found: string | undefined;
  for (const candidate of paths) {
    if (path.startsWith(`${candidate}/`) && candidate.length > (found?.length ?? 0))
      found = candidate;
  }
  return found;
}

/**
 * Whether a client would rather speak over a WebSocket. Codex (0.169) goes on over HTTP at once when it
 * reads 426, and after six seconds of tries when it reads 404 or 405.
 */
const asksForWebSocket = ({ headers }: ServedRequest): boolean =>
  headers.get("upgrade")?.toLowerCase() === "websocket";

const noWebSockets =
  "This endpoint does not speak over WebSockets. Send the request as HTTP, with stream: true for events.";

function refuseMethod<Dependencies>(
  context: RequestContext,
  {
    options,
    encodeError,
    allow,
  }: { options: Compiling<Dependencies>; encodeError: ErrorEncoder; allow: string },
): Answer {
  const { request } = context;
  if (asksForWebSocket(request)) {
    // RFC 9110 section 15.5.22 wants to be told which protocol is spoken.
    context.headers["upgrade"] = "HTTP/1.1";
    return errorResponse(new GatewayError("upgrade_required", noWebSockets), {
      context,
      options,
      encodeError,
    });
  }
  context.headers["allow"] = allow;
  const error = new GatewayError(
    "method_not_allowed",
    `${pathOf(request)} does not take ${request.method}; it takes ${allow}.`,
  );
  return errorResponse(error, { context, options, encodeError });
}

function compileFallback<Dependencies>(options: Compiling<Dependencies>): RouteHandler {
  const encoders = new Map<string, ErrorEncoder>();
  for (const endpoint of options.endpoints) {
    for (const path of pathsOf(endpoint)) encoders.set(path, endpoint.encodeError);
  }
  const handle: RouteHandler = (request) => {
    const context = newContext(request, options);
    const elsewhere = options.pageElsewhere(context);
    if (elsewhere !== undefined) return elsewhere;
    const path = pathOf(request);
    const encodeError = encoders.get(nearest(encoders.keys(), path) ?? "") ?? encodeContractError;
    const error = new GatewayError(
      "not_found",
      `There is no endpoint ${request.method} ${path}. The list is at /docs.`,
    );
    return errorResponse(error, { context, options, encodeError });
  };
  return soundly(handle, { options, encodeError: encodeContractError });
}
