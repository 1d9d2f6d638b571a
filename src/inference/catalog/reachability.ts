import type {
  CatalogModel,
  CatalogSnapshot,
  Provider,
  Surface,
  UpstreamDialect,
  UpstreamRoute,
} from "./model.ts";

/** The dialect in which a route serves a surface; undefined when it does not. */
export const routeDialect = (route: UpstreamRoute, surface: Surface): UpstreamDialect | undefined =>
  route.dialect ?? route.provider.dialects[surface];

/** The address of a provider's surface, without a trailing slash; undefined while its variables are unset. */
export const surfaceBaseUrl = (provider: Provider, surface: Surface): string | undefined =>
  provider.surfaceBaseUrls?.[surface] ?? provider.baseUrl;

/** The address that a route's requests of a surface go to, by its dialect where that is served elsewhere. */
export function routeBaseUrl(route: UpstreamRoute, surface: Surface): string | undefined {
  const dialect = routeDialect(route, surface);
  return (
    (dialect && route.provider.dialectBaseUrls?.[dialect]) ??
    surfaceBaseUrl(route.provider, surface)
  );
}

/** Dialects that requests can be sent in. */
export type SendableDialects = Pick<ReadonlySet<UpstreamDialect>, "has">;

/** Whether this process can send a model's requests to a route, with whichever credential. */
export function isSendable(
  route: UpstreamRoute,
  model: CatalogModel,
  sendable: SendableDialects,
): boolean {
  const { surface } = model;
  const dialect = routeDialect(route, surface);
  return (
    dialect !== undefined && sendable.has(dialect) && routeBaseUrl(route, surface) !== undefined
  );
}

/** Whether the platform has a credential of its own for a provider. */
export const hasCredential = ({ apiKey, signing }: Provider): boolean =>
  apiKey !== undefined || signing !== undefined;

/** Whether a route serves callers without a key of their own: sendable, with platform credential and price. */
export const isReachable = (
  route: UpstreamRoute,
  model: CatalogModel,
  sendable: SendableDialects,
): boolean =>
  hasCredential(route.provider) &&
  // Nobody is charged for decisions, so their price need not be known.
  (route.price !== undefined || model.surface === "decisions") &&
  !model.comingSoon &&
  isSendable(route, model, sendable);

/** Whether a provider can be called with a credential of the platform. */
export const isPlatformServed = (provider: Provider): boolean =>
  hasCredential(provider) && provider.baseUrl !== undefined;

/** Whether any provider but the simulated one has a credential of the platform and an address. */
export const hasPlatformCredential = ({ providers }: Pick<CatalogSnapshot, "providers">): boolean =>
  providers.values().some((provider) => isPlatformServed(provider) && !provider.simulated);
