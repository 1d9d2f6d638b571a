import type {
  CatalogModel, CatalogSnapshot, Provider, Surface, UpstreamDialect, UpstreamRoute,
} from "./model.ts";

/** The dialect in which a route serves a surface; undefined when it does not. */
export const routeDialect = (route: UpstreamRoute, surface: Surface): UpstreamDialect | undefined =>
  route.dialect ?? route.provider.dialects[surface];

/** The address of a provider's surface, without a trailing slash; undefined while its variables are unset. */
export const surfaceBaseUrl = (provider: Provider, surface: Surface): string | undefined =>
  provider.surfaceBaseUrls?.[surface] ?? provider.baseUrl;

/** Whether this process can send a model's requests to a route, with whichever credential. */
export function isSendable(
  route: UpstreamRoute,
  model: CatalogModel,
  sendable: ReadonlySet<UpstreamDialect>,
): boolean {
  const { surface } = model;
  const dialect = routeDialect(route, surface);
  return dialect !== undefined && sendable.has(dialect) && surfaceBaseUrl(route.provider, surface) !== undefined;
}

/** Whether a route serves callers without a key of their own: sendable, with platform credential and price. */
export const isReachable = (
  route: UpstreamRoute,
  model: CatalogModel,
  sendable: ReadonlySet<UpstreamDialect>,
): boolean =>
  route.provider.apiKey !== undefined
  && route.price !== undefined
  && !model.comingSoon
  && isSendable(route, model, sendable);

/** Whether any provider but the simulated one has a credential of the platform and an address. */
export const hasPlatformCredential = ({ providers }: CatalogSnapshot): boolean =>
  providers.values().some(({ apiKey, baseUrl, simulated }) =>
    apiKey !== undefined && baseUrl !== undefined && !simulated);
