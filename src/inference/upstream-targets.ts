import { assert } from "../platform/lib/assert.ts";
import type { CatalogModel, UpstreamDialect, UpstreamRoute } from "./catalog/model.ts";
import { isReachable, routeDialect, surfaceBaseUrl } from "./catalog/reachability.ts";
import { upstreamTarget, type UpstreamTarget } from "./upstream/upstream-client.ts";

/** Upstream dialects that requests can be sent in, with the path below a provider's base URL. */
const dialectPaths: Partial<Record<UpstreamDialect, string>> = { "openai-chat": "/chat/completions" };

/** The dialects of `dialectPaths`. */
export const sendableDialects: ReadonlySet<UpstreamDialect> = new Set(Object.keys(dialectPaths) as UpstreamDialect[]);

/** Whether a route serves callers without a key of their own: callable with a platform credential, and billable. */
export const isServable = (route: UpstreamRoute, model: CatalogModel): boolean => isReachable(route, model, sendableDialects);

/** Builds the look-up of where a chat route's requests go: the constant part of their head is made once a route. */
export function createTargetLookup(): (route: UpstreamRoute) => UpstreamTarget {
  const targets = new WeakMap<UpstreamRoute, UpstreamTarget>();
  return (route) => {
    let target = targets.get(route);
    if (target === undefined) targets.set(route, (target = buildTarget(route)));
    return target;
  };
}

function buildTarget(route: UpstreamRoute): UpstreamTarget {
  const { provider } = route;
  const dialect = routeDialect(route, "chat");
  const path = dialect === undefined ? undefined : dialectPaths[dialect];
  const baseUrl = surfaceBaseUrl(provider, "chat");
  assert(baseUrl !== undefined && path !== undefined, `provider ${provider.id} cannot be called`);
  const { name, prefix } = provider.credentialHeader;
  return upstreamTarget(baseUrl + path, {
    "content-type": "application/json",
    "user-agent": "switchyard",
    ...provider.headers,
    ...(provider.apiKey === undefined || provider.apiKey === "" ? {} : { [name]: prefix + provider.apiKey }),
  });
}
