import { assert } from "../platform/kernel/assert.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { errorAddress, GatewayError } from "../platform/kernel/errors.ts";
import { timeOrderedHex } from "../platform/kernel/ids.ts";
import { checkBody, refuseUnknownFields, refuseUnknownParameters } from "./bodies/check-body.ts";
import {
  anyOrigin,
  deprecationHeaders,
  type Endpoint,
  isOpenToOrigins,
  type Method,
  pathsOf,
  type RouterGuard,
  takesKnownParametersOnly,
} from "./endpoint.ts";
import {
  asGatewayError,
  encodeContractError,
  type ErrorEncoder,
  errorHeaders,
  readableBody,
} from "./error-envelope.ts";
import {
  ambiguityOf,
  pathOf,
  RequestContext,
  type RequestSource,
  type InnerCall,
  type InnerAnswer,
} from "./request-context.ts";
import type { Answer } from "./reply.ts";
import type { ServedRequest } from "./served-request.ts";
import {
  answerInBackground,
  type BackgroundAnswer,
  type BackgroundCall,
  backgroundRequest,
  innerAnswer,
  innerRequest,
} from "./inner-call.ts";
import { parseJsonObject, readJsonText } from "./bodies/read-body.ts";
import { meantPath, patternOf, withoutFinalSlash } from "./mistyped-paths.ts";
import { preflight } from "./preflight.ts";
import {
  allowOf,
  refusingOtherMethods,
  withEveryMethodWhereNeeded,
  type CompiledRoutes,
  type MethodRoute,
  type RouteHandler,
  type RouteMethod,
} from "./routes-by-method.ts";
import { asksForWebSocket, wrongProtocolOf } from "./sockets/handshake.ts";

/** The dependencies of the router itself. Handlers receive their own. */
interface RouterOptions<Dependencies, Caller> {
  endpoints: readonly Endpoint<Dependencies, unknown, Caller>[];
  dependencies: Dependencies;
  clock: Clock;
  guard: RouterGuard<Caller>;
  /** Returns where people reach the service, without a trailing slash. */
  publicUrl(): string;
  /**
   * Returns the address that anonymous requests are counted by, and that allowlists and the audit
   * log use.
   */
  clientAddress(request: ServedRequest): string;
  /** Returns whether a request was encrypted in transit. */
  isEncrypted(request: ServedRequest): boolean;
  /** Whether WebSockets are offered; otherwise their handshakes are refused with 426. */
  sockets: boolean;
  /** Called for every refused or failed request, for logs and metrics. */
  onError(
    error: GatewayError,
    context: { traceId: string; method: string; path: string; caller: Caller },
  ): void;
  /** Renders an error as a page for people's browsers; undefined for programs. */
  errorPage(
    error: GatewayError,
    answer: { context: RequestContext<unknown, Caller>; headers: Readonly<Record<string, string>> },
  ): Response | undefined;
  /**
   * Returns the page of a person's browser for a path that no endpoint has, or a redirect to it;
   * undefined where there is no such page.
   */
  pageElsewhere(context: RequestContext<unknown, Caller>): Response | Promise<Response> | undefined;
  /** Called when an endpoint begins to work on a request. */
  onBegin(): void;
  /** Called for every answer. */
  onEnd(answer: AnsweredRequest<Caller>): void;
}

/** A request that was answered. */
export interface AnsweredRequest<Caller> {
  traceId: string;
  method: string;
  /** The path of its endpoint, with names in place of ids. */
  path: string;
  status: number;
  /** Whether its settlement counts it, as for served inference. */
  settled: boolean;
  caller: Caller;
  /** When it arrived, in milliseconds of the monotonic clock. */
  startedMs: number;
}

/** The inputs of compiling: the router's options, and the source of each request. */
interface Compiling<Dependencies, Caller> extends RouterOptions<Dependencies, Caller> {
  source: RequestSource<Caller>;
}

/** Creates the context of a request that has just arrived, or of an inner call. */
function newContext<Dependencies, Caller>(
  request: ServedRequest,
  { clock, source, guard }: Compiling<Dependencies, Caller>,
  inner?: { traceId: string | undefined },
): RequestContext<unknown, Caller> {
  return new RequestContext({
    request,
    traceId: inner?.traceId ?? timeOrderedHex(clock.nowMs()),
    isInner: inner !== undefined,
    startedMs: clock.monotonicMs(),
    caller: guard.unknownCaller,
    source,
  });
}

/** An endpoint with its compiled functions. */
interface CompiledEndpoint<Dependencies, Caller> {
  endpoint: Endpoint<Dependencies, unknown, Caller>;
  handler: RouteHandler;
  /** Runs an admitted request; without a promise where the endpoint needs none. */
  work(context: RequestContext<unknown, Caller>): Answer | Promise<Answer>;
}

/** The endpoints of one path, by method. */
type PathMethods<Dependencies, Caller> = Map<Method, CompiledEndpoint<Dependencies, Caller>>;

/** Compiles the endpoint table into the server's routes and the handler for all other paths. */
export function compileRoutes<Dependencies, Caller>(
  given: RouterOptions<Dependencies, Caller>,
): {
  routes: CompiledRoutes;
  fallback: RouteHandler;
  /** Runs an endpoint in the background, for a caller that is not connected. */
  runInBackground(call: BackgroundCall<Caller>): Promise<BackgroundAnswer>;
} {
  const paths = new Map<string, PathMethods<Dependencies, Caller>>();
  const byName = new Map<string, CompiledEndpoint<Dependencies, Caller>>();
  const options: Compiling<Dependencies, Caller> = {
    ...given,
    source: {
      addressOf: given.clientAddress,
      isEncrypted: given.isEncrypted,
      ask: (context, call) => askInner(context, { call, byName, options }),
      serve(name, request) {
        const compiled = byName.get(name);
        assert(compiled !== undefined, `there is no endpoint ${name}`);
        return compiled.handler(request);
      },
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
  const routes: Record<string, MethodRoute> = {};
  for (const [path, methods] of paths) {
    const route = compilePath(methods, options);
    routes[path] = route;
    // Programs that join a base URL and a path carelessly end it with a slash.
    if (methods.get("POST")?.endpoint.access.llmKey === true) routes[`${path}/`] = route;
  }
  return {
    routes: withEveryMethodWhereNeeded(routes),
    fallback: refusingOtherMethods(compileFallback(options), routes),
    runInBackground: (call) => runInBackground(call, { byName, options }),
  };
}

/**
 * Compiles the handler of a path for every method, and names those that it does not refuse. HEAD is
 * answered as GET is, without the body (RFC 9110, 9.3.2).
 */
function compilePath<Dependencies, Caller>(
  methods: PathMethods<Dependencies, Caller>,
  options: Compiling<Dependencies, Caller>,
): MethodRoute {
  const plain = [...methods].filter(([, { endpoint }]) => !endpoint.socket);
  // One that serves some of the path's names is no method of the others.
  const named = plain.filter(([, { endpoint }]) => endpoint.serves === undefined);
  const byMethod = new Map<RouteMethod, RouteHandler>(
    plain.map(([method, { endpoint, handler }]) => [
      method,
      endpoint.serves === undefined
        ? handler
        : (request) => (endpoint.serves?.(pathOf(request)) ? handler : refuse)(request),
    ]),
  );
  const get = byMethod.get("GET");
  if (get !== undefined) byMethod.set("HEAD", get);
  const openMethods = plain
    .filter(([, { endpoint }]) => isOpenToOrigins(endpoint))
    .map(([method]) => method);
  if (openMethods.length > 0)
    byMethod.set("OPTIONS", (request) => {
      const context = newContext(request, options);
      context.answerHeaders.share(options.guard.windowHeaders(context.caller));
      return preflight(context, openMethods);
    });
  const [first] = named.length > 0 ? named : methods;
  const encodeError = first?.[1].endpoint.encodeError ?? encodeContractError;
  const allow = allowOf((named.length > 0 ? named : plain).map(([method]) => method));
  const refuse: RouteHandler = (request) =>
    refuseMethod(newContext(request, options), { options, encodeError, allow });
  const handlePlain: RouteHandler = (request) =>
    (byMethod.get(request.method as RouteMethod) ?? refuse)(request);
  const socket = options.sockets && [...methods.values()].find(({ endpoint }) => endpoint.socket);
  const handle: RouteHandler = socket
    ? (request) =>
        request.method === "GET" && asksForWebSocket(request)
          ? socket.handler(request)
          : handlePlain(request)
    : handlePlain;
  return {
    methods: [...new Set([...byMethod.keys(), ...methods.keys()])],
    handle: refusingAmbiguous(handle, { options, encodeError }),
  };
}

/**
 * Wraps a handler so that it receives only requests that every parser reads alike. The connection
 * of any other request is closed.
 */
function refusingAmbiguous<Dependencies, Caller>(
  handle: RouteHandler,
  { options, encodeError }: { options: Compiling<Dependencies, Caller>; encodeError: ErrorEncoder },
): RouteHandler {
  return (request) => {
    const ambiguity = ambiguityOf(request);
    if (ambiguity === undefined) return handle(request);
    request.closes = true;
    return errorResponse(new GatewayError("bad_request", ambiguity), {
      context: newContext(request, options),
      options,
      encodeError,
    });
  };
}

function compileEndpoint<Dependencies, Caller>(
  endpoint: Endpoint<Dependencies, unknown, Caller>,
  options: Compiling<Dependencies, Caller>,
): CompiledEndpoint<Dependencies, Caller> {
  const isInference = endpoint.counting === "by-handler";
  const deprecation = endpoint.deprecated && deprecationHeaders(endpoint.deprecated);
  const work = compileWork(endpoint, options);
  const isShared = isOpenToOrigins(endpoint);
  const handler: RouteHandler = async (request) => {
    const context = newContext(request, options);
    if (isShared) context.answerHeaders.share(anyOrigin);
    if (deprecation !== undefined) context.answerHeaders.share(deprecation);
    options.onBegin();
    let status = 200;
    try {
      const arriving = options.guard.admit(endpoint, context);
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
        traceId: context.traceId,
        method: endpoint.method,
        caller: context.caller,
        startedMs: context.startedMs,
        path: endpoint.path,
        status,
        settled: (context.settled ?? isInference) && status < 400,
      });
    }
  };
  return { endpoint, handler, work };
}

/**
 * Compiles an endpoint's work on an admitted request: it checks query and body, audits changes and
 * answers repetitions.
 */
function compileWork<Dependencies, Caller>(
  endpoint: Endpoint<Dependencies, unknown, Caller>,
  options: Compiling<Dependencies, Caller>,
): CompiledEndpoint<Dependencies, Caller>["work"] {
  const checksQuery = takesKnownParametersOnly(endpoint);
  const change = options.guard.around(endpoint, (context) =>
    endpoint.handle(context, options.dependencies),
  );
  return (context) => {
    if (checksQuery) refuseUnknownParameters(endpoint.query, context.query);
    return endpoint.body === undefined
      ? change(context, "")
      : readChecked(endpoint, context).then((bodyText) => change(context, bodyText));
  };
}

/** Calls an endpoint for the client of another request, without counting at its door. */
async function askInner<Dependencies, Caller>(
  from: RequestContext<unknown, Caller>,
  {
    call,
    byName,
    options,
  }: {
    call: InnerCall<Caller>;
    byName: ReadonlyMap<string, CompiledEndpoint<Dependencies, Caller>>;
    options: Compiling<Dependencies, Caller>;
  },
): Promise<InnerAnswer> {
  const compiled = byName.get(call.endpoint);
  assert(compiled !== undefined, `there is no endpoint ${call.endpoint}`);
  const { endpoint, work } = compiled;
  const request = innerRequest(from.request, call);
  // A request may make several calls, and each of inference has a hold and a record of its own.
  const traceId = endpoint.counting === "by-handler" ? undefined : from.traceId;
  const context = newContext(request, options, { traceId });
  try {
    await options.guard.admitInner(endpoint, context, call);
    return await innerAnswer(await work(context));
  } finally {
    request.memory.release();
  }
}

/** Runs an endpoint for a caller that is not connected. A refusal is an answer, as for clients. */
function runInBackground<Dependencies, Caller>(
  call: BackgroundCall<Caller>,
  {
    byName,
    options,
  }: {
    byName: ReadonlyMap<string, CompiledEndpoint<Dependencies, Caller>>;
    options: Compiling<Dependencies, Caller>;
  },
): Promise<BackgroundAnswer> {
  const compiled = byName.get(call.endpoint);
  assert(compiled !== undefined, `there is no endpoint ${call.endpoint}`);
  const context = newContext(backgroundRequest(call), options);
  return answerInBackground(call, { ...compiled, ...options, context });
}

/** Reads and checks the body; returns its text. */
async function readChecked<Dependencies, Caller>(
  endpoint: Endpoint<Dependencies, unknown, Caller>,
  context: RequestContext<unknown, Caller>,
): Promise<string> {
  const text = await readJsonText(context.request, endpoint.bodyBytesMax ?? 0);
  if (endpoint.body === undefined) return text;
  const fields = endpoint.bodyOptional && text === "" ? {} : parseJsonObject(text);
  refuseUnknownFields(endpoint.body, fields);
  context.body = checkBody(endpoint.body, fields);
  return text;
}

/**
 * Returns the longest of the paths that contain this path. Its clients speak that endpoint's
 * dialect.
 */
function nearest(paths: Iterable<string>, path: string): string | undefined {
  let found: string | undefined;
  for (const candidate of paths)
    if (path.startsWith(`${candidate}/`) && candidate.length > (found?.length ?? 0))
      found = candidate;
  return found;
}

function refuseMethod<Dependencies, Caller>(
  context: RequestContext<unknown, Caller>,
  {
    options,
    encodeError,
    allow,
  }: { options: Compiling<Dependencies, Caller>; encodeError: ErrorEncoder; allow: string },
): Answer {
  const { request } = context;
  const wrongProtocol = wrongProtocolOf(request, allow);
  if (wrongProtocol !== undefined) {
    context.headers["upgrade"] = wrongProtocol.upgrade;
    return errorResponse(wrongProtocol.error, { context, options, encodeError });
  }
  context.headers["allow"] = allow;
  const error = new GatewayError(
    "method_not_allowed",
    `${pathOf(request)} does not take ${request.method}; it takes ${allow}.`,
  );
  return errorResponse(error, { context, options, encodeError });
}

function compileFallback<Dependencies, Caller>(
  options: Compiling<Dependencies, Caller>,
): RouteHandler {
  const encoders = new Map<string, ErrorEncoder>();
  for (const endpoint of options.endpoints) {
    for (const path of pathsOf(endpoint)) encoders.set(path, endpoint.encodeError);
  }
  // Of pages alone: a path of the API is right or unknown.
  const pages = options.endpoints.filter(({ method, base }) => method === "GET" && base === "root");
  const pathsToGet = patternOf(pages.flatMap(pathsOf));
  let known: RegExp | undefined;
  const handle: RouteHandler = (request) => {
    const context = newContext(request, options);
    context.answerHeaders.share(options.guard.windowHeaders(context.caller));
    const elsewhere = options.pageElsewhere(context) ?? withoutFinalSlash(context, { pathsToGet });
    if (elsewhere !== undefined) return elsewhere;
    const path = pathOf(request);
    known ??= patternOf([...encoders.keys()]);
    const meant = meantPath(path, known);
    const encodeError =
      encoders.get(meant ?? nearest(encoders.keys(), path) ?? "") ?? encodeContractError;
    const hint =
      meant === undefined
        ? ""
        : ` Did you mean ${meant}? Then the base URL of the client is wrong.`;
    const error = new GatewayError(
      "not_found",
      `There is no endpoint ${request.method} ${path}.${hint} The list is at /docs.`,
    );
    return errorResponse(error, { context, options, encodeError });
  };
  return refusingAmbiguous(handle, { options, encodeError: encodeContractError });
}

/** Builds the answer to a request that was refused or failed, in its client's dialect. */
function errorResponse<Dependencies, Caller>(
  thrown: unknown,
  {
    context,
    options,
    encodeError,
    endpoint,
  }: {
    context: RequestContext<unknown, Caller>;
    options: Compiling<Dependencies, Caller>;
    encodeError: ErrorEncoder;
    endpoint?: Endpoint<Dependencies, unknown, Caller>;
  },
): Answer {
  const error = asGatewayError(thrown);
  const { traceId, request, caller } = context;
  error.metadata["doc_url"] ??= errorAddress(options.publicUrl(), error.code);
  options.onError(error, { traceId, method: request.method, path: pathOf(request), caller });
  if (!("x-ratelimit-limit" in context.headers))
    Object.assign(context.headers, options.guard.windowHeaders(context.caller));
  const headers = { ...errorHeaders(error), ...challengeOf(error, { context, options, endpoint }) };
  const page = options.errorPage(error, { context, headers });
  if (page !== undefined) return page;
  const keyInQuery = context.query.has("key");
  const body = encodeError(error, { traceId, headers: request.headers, keyInQuery });
  const { status } = error;
  return context.json(readableBody(body, { headers: request.headers, status }), {
    status,
    headers,
  });
}

/**
 * Returns the challenge that tells a client how to get a credential for a protected resource (RFC
 * 9728, section 5.1; RFC 6750, section 3).
 */
function challengeOf<Dependencies, Caller>(
  { status, code }: GatewayError,
  {
    context,
    options,
    endpoint,
  }: {
    context: RequestContext<unknown, Caller>;
    options: Compiling<Dependencies, Caller>;
    endpoint: Endpoint<Dependencies, unknown, Caller> | undefined;
  },
): Record<string, string> {
  if (status !== 401 || !endpoint?.protectedResource) return {};
  const metadata = `${options.publicUrl()}/.well-known/oauth-protected-resource${pathOf(context.request).replace(/\/$/, "")}`;
  const refused = code === "missing_api_key" ? "" : ', error="invalid_token"';
  return { "www-authenticate": `Bearer resource_metadata="${metadata}"${refused}` };
}
