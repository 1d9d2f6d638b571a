import type { BunRequest } from "bun";
import { PathTable, pathsBesideOthers } from "./path-table.ts";
import type { Answer } from "./reply.ts";
import { pathOf } from "./request-context.ts";
import type { ServedRequest } from "./served-request.ts";

/**
 * Handles one request, without a promise where nothing has to be waited for. Anything it throws is
 * a bug of the gateway.
 */
export type RouteHandler = (request: ServedRequest) => Answer | Promise<Answer>;

const routeMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** A method that a route can be for. */
export type RouteMethod = (typeof routeMethods)[number];

/** Returns methods as `Allow` lists them: HEAD is answered wherever GET is. */
export const allowOf = (methods: readonly RouteMethod[]): string =>
  methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");

/** A handler of these methods alone; requests with others go to the fallback. */
export interface MethodRoute {
  readonly methods: readonly RouteMethod[];
  readonly handle: RouteHandler;
}

/**
 * The handlers by path. A segment that begins with a colon matches any value. The platform enters a
 * handler of every method into 35 tables, which takes four times as long as those of single methods.
 */
export type CompiledRoutes = Readonly<Record<string, RouteHandler | MethodRoute>>;

/**
 * Enters routes for every method that a route can be for where a request with another method would
 * reach the route of another path: `DELETE /responses/compact` is refused by that path, and not the
 * response `compact` deleted. No route is entered for any other method.
 */
export function withEveryMethodWhereNeeded(
  routes: Readonly<Record<string, MethodRoute>>,
): CompiledRoutes {
  const every: Record<string, MethodRoute> = {};
  for (const path of pathsBesideOthers(Object.keys(routes))) {
    const route = routes[path];
    if (route !== undefined) every[path] = { ...route, methods: routeMethods };
  }
  return { ...routes, ...every };
}

/**
 * Wraps the handler of all other requests so that a path answers for the methods that its route was
 * not entered for, with the methods that it takes.
 */
export function refusingOtherMethods(
  fallback: RouteHandler,
  routes: Readonly<Record<string, MethodRoute>>,
): RouteHandler {
  let table: PathTable<MethodRoute> | undefined;
  return (request) => {
    table ??= new PathTable(Object.entries(routes));
    const route = table.find(pathOf(request));
    // With a method of its own, the platform has read the path otherwise, as it does for `/a/../b`.
    const isOther = route?.methods.every((method) => method !== request.method);
    return route !== undefined && isOther === true ? route.handle(request) : fallback(request);
  };
}

/** Returns routes as the platform takes them; `answer` runs the handler of a request. */
export function platformRoutes<Sent>(
  routes: CompiledRoutes,
  answer: (request: BunRequest, handler: RouteHandler) => Sent,
): Record<string, PlatformRoute<Sent>> {
  const entered: Record<string, PlatformRoute<Sent>> = {};
  for (const path of Object.keys(routes)) {
    const route = routes[path];
    if (route === undefined) continue;
    const handle = typeof route === "function" ? route : route.handle;
    const serve = (request: BunRequest): Sent => answer(request, handle);
    entered[path] =
      typeof route === "function"
        ? serve
        : Object.fromEntries(route.methods.map((method) => [method, serve]));
  }
  return entered;
}

type PlatformRoute<Sent> =
  | ((request: BunRequest) => Sent)
  | Partial<Record<RouteMethod, (request: BunRequest) => Sent>>;
