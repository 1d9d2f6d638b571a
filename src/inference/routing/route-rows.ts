import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import { comparablePrice } from "./candidate.ts";
import type { HealthWindows } from "./health-windows.ts";
import type { ProviderWindows } from "./provider-windows.ts";

/** What planning knows of a route whatever is requested. */
export interface RouteRow {
  model: CatalogModel;
  route: UpstreamRoute;
  provider: ProviderWindows;
  /** By which routes are compared; undefined where it depends on the size of the input. */
  price: number | undefined;
  isServable: boolean;
  /** The provider's slug and display name in lower case. */
  names: readonly [slug: string, displayName: string];
}

/** Where rows come from. */
export interface RowSources {
  health: HealthWindows;
  /** Whether this process can call a route with a credential of its own; the same for as long as the route is in a catalog. */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

interface KnownRows extends RowSources {
  rows: readonly RouteRow[];
}

/** Models are never changed in place, and live as long as their catalog. */
const knownRows = new WeakMap<CatalogModel, KnownRows>();

/** The routes of a model, in the catalog's order: worked out once a catalog. */
export function rowsOf(model: CatalogModel, { health, isServable }: RowSources): readonly RouteRow[] {
  const known = knownRows.get(model);
  if (known !== undefined && known.health === health && known.isServable === isServable) return known.rows;
  const rows = model.routes.map((route): RouteRow => ({
    model,
    route,
    provider: health.windowsOf(route.provider.id),
    price: route.price?.tiers === undefined ? comparablePrice(route) : undefined,
    isServable: isServable(route, model),
    names: [route.provider.id.toLowerCase(), route.provider.name.toLowerCase()],
  }));
  knownRows.set(model, { health, isServable, rows });
  return rows;
}
