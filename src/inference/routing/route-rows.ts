import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import { comparablePrice, type LeftOut } from "./candidate.ts";
import type { HealthWindows } from "./health-windows.ts";
import type { ProviderWindows } from "./provider-windows.ts";
import { permits } from "./supports.ts";

/** What planning knows of a route whatever is requested. */
export interface RouteRow {
  model: CatalogModel;
  route: UpstreamRoute;
  provider: ProviderWindows;
  /** By which routes are compared; undefined where it depends on the size of the input. */
  price: number | undefined;
  isServable: boolean;
  takesTools: boolean;
  /** The provider's slug and display name in lower case. */
  names: readonly [slug: string, displayName: string];
}

/** What planning knows of a model's routes, in the catalog's order. */
export interface ModelRows {
  all: readonly RouteRow[];
  /** Those that this process can call with a credential of its own. */
  servable: readonly RouteRow[];
  /** The others. In most gateways they are the most, since the catalog knows many more providers than an operator has keys of. */
  notServable: readonly LeftOut[];
}

/** Where rows come from. */
export interface RowSources {
  health: HealthWindows;
  /** Whether this process can call a route with a credential of its own; the same for as long as the route is in a catalog. */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

/** What is said of routes that no credential serves. */
export const notServable = "not servable with a platform credential";

/** Models are never changed in place, and live as long as their catalog. */
const knownRows = new WeakMap<CatalogModel, ModelRows & RowSources>();

/** The routes of a model as planning sees them: worked out once a catalog. */
export function rowsOf(model: CatalogModel, sources: RowSources): ModelRows {
  const known = knownRows.get(model);
  if (
    known !== undefined &&
    known.health === sources.health &&
    known.isServable === sources.isServable
  )
    return known;
  const { health, isServable } = sources;
  const all = model.routes.map((route) => rowOf(route, { model, health, isServable }));
  const others = all.filter((row) => !row.isServable);
  const rows = {
    health,
    isServable,
    all,
    servable: all.filter((row) => row.isServable),
    notServable: others.map(leftOutOf),
  };
  knownRows.set(model, rows);
  return rows;
}

function rowOf(
  route: UpstreamRoute,
  { model, health, isServable }: RowSources & { model: CatalogModel },
): RouteRow {
  const { id, name } = route.provider;
  return {
    model,
    route,
    provider: health.windowsOf(id),
    price: route.price?.tiers === undefined ? comparablePrice(route) : undefined,
    isServable: isServable(route, model),
    takesTools: permits({ route }, "tools"),
    names: [id.toLowerCase(), name.toLowerCase()],
  };
}

/** What is said of a row that nobody can serve. */
export const leftOutOf = ({ provider, model }: RouteRow): LeftOut => ({
  provider: provider.id,
  model: model.id,
  rule: notServable,
});
