import { pathOf, type RequestContext } from "./request-context.ts";
import { Reply } from "./reply.ts";

/** Returns a pattern that matches exactly the paths of endpoints, with any value of a parameter. */
export const patternOf = (paths: readonly string[]): RegExp =>
  new RegExp(
    `^(?:${paths.map((path) => path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+")).join("|")})$`,
  );

/**
 * Redirects a GET whose path is an endpoint's but for slashes at its end, as people type it and as
 * static sites have it; undefined for everything else.
 */
export function withoutFinalSlash(
  { request, headers }: RequestContext,
  { pathsToGet }: { pathsToGet: RegExp },
): Reply | undefined {
  if (request.method !== "GET" && request.method !== "HEAD") return undefined;
  const path = pathOf(request);
  const plain = path.replace(/\/+$/, "");
  if (plain === path || !pathsToGet.test(plain)) return undefined;
  const at = request.url.indexOf("?");
  const location = plain + (at < 0 ? "" : request.url.slice(at));
  return new Reply("", { status: 308, headers: { ...headers, location } });
}

/**
 * Returns the path of an endpoint that a client means whose base URL has its version twice or not at
 * all, such as `/v1/v1/messages` or `/chat/completions`; undefined where there is none. `known`
 * matches the paths of endpoints.
 */
export function meantPath(path: string, known: RegExp): string | undefined {
  const once = path.replace(/^\/(?:api\/)?(v1|v1beta)\/(?=(?:api\/)?\1\/)/, "/");
  return [once, `/v1${path}`, `/v1beta${path}`].find((each) => each !== path && known.test(each));
}
