import type { BunRequest, Server } from "bun";
import type { Caller } from "../account/keys/caller.ts";
import type { CredentialDirectory } from "../account/keys/credential-directory.ts";
import type { Clock } from "../platform/lib/clock.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { timeOrderedHex } from "../platform/lib/ids.ts";
import { authenticate } from "./authenticate.ts";
import { countRequest, describeWindow, type RateCounters } from "./count-request.ts";
import { pathsOf, type Endpoint } from "./endpoint.ts";
import { asGatewayError, encodeContractError, errorHeaders, type ErrorEncoder } from "./error-envelope.ts";
import { parseJsonObject, readBodyText } from "./read-body.ts";
import { RequestContext } from "./request-context.ts";
import { pathOf } from "./request-target.ts";
import { checkBody } from "./check-body.ts";

/** What the router itself needs; handlers get their own dependencies. */
export interface RouterOptions<Dependencies> {
  endpoints: readonly Endpoint<Dependencies>[];
  dependencies: Dependencies;
  directory: CredentialDirectory;
  counters: RateCounters;
  clock: Clock;
  /** The address that anonymous requests are counted by. */
  clientAddress(request: Request, server: Server<undefined>): string;
  /** Told of every refused or failed request, for logs and metrics. */
  onError(error: GatewayError, context: { traceId: string; method: string; path: string }): void;
  /** Told when an endpoint begins to work on a request. */
  onBegin(): void;
  /** Told of every answer; `settled` when its settlement counts it, as it does for served inference. */
  onEnd(answer: { path: string; status: number; settled: boolean }): void;
}

type RouteHandler = (request: BunRequest, server: Server<undefined>) => Response | Promise<Response>;
export type CompiledRoutes = Record<string, Partial<Record<string, RouteHandler>>>;

/** Compiles the endpoint table into Bun's routes and the handler for everything that is not in it. */
export function compileRoutes<Dependencies>(options: RouterOptions<Dependencies>): {
  routes: CompiledRoutes;
  fallback: RouteHandler;
} {
  const routes: CompiledRoutes = {};
  for (const endpoint of options.endpoints) {
    const handler = compileEndpoint(endpoint, options);
    for (const path of pathsOf(endpoint)) (routes[path] ??= {})[endpoint.method] = handler;
  }
  return { routes, fallback: compileFallback(options, routes) };
}

function newContext<Dependencies>(
  request: BunRequest, server: Server<undefined>, options: RouterOptions<Dependencies>,
): RequestContext {
  const { clock } = options;
  return new RequestContext({
    request, server, traceId: timeOrderedHex(clock.nowMs()), startedMs: clock.monotonicMs(), caller: { kind: "anonymous", address: "" },
  });
}

function compileEndpoint<Dependencies>(endpoint: Endpoint<Dependencies>, options: RouterOptions<Dependencies>): RouteHandler {
  const isInference = endpoint.counting === "by-handler";
  return async (request, server) => {
    const context = newContext(request, server, options);
    options.onBegin();
    let status = 200;
    try {
      admit(endpoint, { context, options });
      if (endpoint.body !== undefined) {
        const text = await readBodyText(request, endpoint.bodyBytesMax ?? 0);
        context.body = checkBody(endpoint.body, parseJsonObject(text));
      }
      const response = await endpoint.handle(context, options.dependencies);
      status = response.status;
      return response;
    } catch (thrown) {
      const response = errorResponse(thrown, { context, options, encodeError: endpoint.encodeError });
      status = response.status;
      return response;
    } finally {
      options.onEnd({ path: endpoint.path, status, settled: isInference && status < 400 });
    }
  };
}

/** The guard: credential, scope and, where the door counts, the rate window. */
function admit<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  { context, options }: { context: RequestContext; options: RouterOptions<Dependencies> },
): void {
  const anonymous = (): Caller => ({ kind: "anonymous", address: options.clientAddress(context.request, context.server) });
  context.caller = authenticate({
    headers: context.request.headers, access: endpoint.access, path: endpoint.path,
    directory: options.directory, nowMs: options.clock.nowMs(), anonymous,
  });
  if (endpoint.counting === "at-door") {
    countRequest(options.counters, { caller: context.caller, rateClass: "account", headers: context.headers });
  }
}

function errorResponse<Dependencies>(
  thrown: unknown,
  { context, options, encodeError }: { context: RequestContext; options: RouterOptions<Dependencies>; encodeError: ErrorEncoder },
): Response {
  const error = asGatewayError(thrown);
  options.onError(error, { traceId: context.traceId, method: context.request.method, path: pathOf(context.request) });
  if (!("x-ratelimit-limit" in context.headers)) Object.assign(context.headers, describeWindow(options.counters, context.caller));
  return context.json(encodeError(error, { traceId: context.traceId }), { status: error.status, headers: errorHeaders(error) });
}

/** Whether a concrete path fits a pattern with `:name` segments. */
function pathFits(pattern: string, path: string): boolean {
  const wanted = pattern.split("/");
  const given = path.split("/");
  return wanted.length === given.length
    && wanted.every((segment, index) => (segment.startsWith(":") ? given[index] !== "" : segment === given[index]));
}

function compileFallback<Dependencies>(options: RouterOptions<Dependencies>, routes: CompiledRoutes): RouteHandler {
  const encoders = new Map<string, ErrorEncoder>();
  for (const endpoint of options.endpoints) {
    for (const path of pathsOf(endpoint)) encoders.set(path, endpoint.encodeError);
  }
  return (request, server) => {
    const context = newContext(request, server, options);
    const path = pathOf(request);
    const pattern = Object.keys(routes).find((candidate) => pathFits(candidate, path));
    const encodeError = pattern === undefined ? encodeContractError : encoders.get(pattern) ?? encodeContractError;
    if (pattern === undefined) {
      const error = new GatewayError("not_found", `There is no endpoint ${request.method} ${path}. The list is at /docs.`);
      return errorResponse(error, { context, options, encodeError });
    }
    const allow = Object.keys(routes[pattern] ?? {}).join(", ");
    context.headers["allow"] = allow;
    const error = new GatewayError("method_not_allowed", `${path} does not take ${request.method}; it takes ${allow}.`);
    return errorResponse(error, { context, options, encodeError });
  };
}
