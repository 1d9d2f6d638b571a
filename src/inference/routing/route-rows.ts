import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import { comparablePrice, type LeftOut, type Candidate } from "./candidate.ts";
import type { HealthWindows, ProviderWindows } from "./health-windows.ts";

/** What planning knows of a route before any request. */
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
  /**
   * The others. In most gateways they are the most, since the catalog knows many more providers
   * than an operator has keys of.
   */
  notServable: readonly LeftOut[];
}

/** Where rows come from. */
export interface RowSources {
  health: HealthWindows;
  /**
   * Whether this process can call a route with a credential of its own; the same for as long as the
   * route is in a catalog.
   */
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

/** The entry for a row that cannot be served. */
export const leftOutOf = ({ provider, model }: RouteRow): LeftOut => ({
  provider: provider.id,
  model: model.id,
  rule: notServable,
});

/**
 * Whether a name in `order`, `only` or `ignore` means the provider of a route: its slug or its
 * display name, in any case.
 */
export function namesProvider(
  name: string,
  { provider, names: [slug, displayName] }: RouteRow,
): boolean {
  if (name === provider.id) return true;
  const wanted = name.toLowerCase();
  return wanted === slug || wanted === displayName;
}

/**
 * Parameters that have two names, such as today's and yesterday's of OpenAI: a route that declares
 * one takes what the other says.
 */
const otherName: Readonly<Record<string, string>> = {
  max_tokens: "max_completion_tokens",
  max_completion_tokens: "max_tokens",
  reasoning: "reasoning_effort",
  reasoning_effort: "reasoning",
};

/**
 * Whether a candidate keeps the strict demand for a parameter: its route's list decides, and where
 * there is none the model's (contract: reasoning rule 6). What neither declares is permitted.
 */
export const supports = (
  { model, route }: Pick<Candidate, "model" | "route">,
  parameter: string,
): boolean => isDeclared(route.supportedParameters ?? model.supportedParameters, parameter);

/**
 * Whether a route may be sent a parameter; one without a list of its own is permissive, even if
 * others declare for the model.
 */
export const permits = ({ route }: Pick<Candidate, "route">, parameter: string): boolean =>
  isDeclared(route.supportedParameters, parameter);

function isDeclared(declared: readonly string[] | undefined, parameter: string): boolean {
  if (declared === undefined || declared.length === 0 || declared.includes(parameter)) return true;
  const other = otherName[parameter];
  return other !== undefined && declared.includes(other);
}
