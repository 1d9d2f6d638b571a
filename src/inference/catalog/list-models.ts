import { compareText } from "./catalog-facts.ts";
import { capabilitySlug, type ModelListQuery, type ModelSort } from "./model-list-query.ts";
import type { CatalogModel, CatalogSnapshot } from "./model.ts";

/** What a list shows to one caller. */
export interface ModelListOptions {
  query: ModelListQuery;
  /** Whether the caller can reach a model. */
  isRoutable(model: CatalogModel): boolean;
  /** Requests that a model served in the last 7 days, for the order by usage. */
  weeklyRequests?(modelId: string): number;
}

/** The models that pass every filter, in the order asked for; without one, by id. */
export function listModels(snapshot: CatalogSnapshot, options: ModelListOptions): CatalogModel[] {
  const { query, isRoutable } = options;
  const models = [...snapshot.models.values()].filter(
    (model) => matches(model, query) && (query.all || isRoutable(model)),
  );
  return query.sort === undefined ? models : models.sort(order(query.sort, options));
}

/** How many models a caller can reach. */
export const countModels = (
  snapshot: CatalogSnapshot,
  isRoutable: (model: CatalogModel) => boolean,
): number =>
  snapshot.models.values().reduce((count, model) => count + (isRoutable(model) ? 1 : 0), 0);

/** How many models each provider serves, by its slug. */
export function modelCounts(snapshot: CatalogSnapshot): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { routes, router } of snapshot.models.values()) {
    if (router !== undefined) continue;
    const providerIds = new Set(routes.map(({ provider }) => provider.id));
    for (const id of providerIds) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

function matches(model: CatalogModel, query: ModelListQuery): boolean {
  const { provider, category, minContext, capabilities } = query;
  return (
    (category === undefined || model.category === category) &&
    (minContext === undefined || model.contextLength >= minContext) &&
    (provider === undefined || isFrom(model, provider.toLowerCase())) &&
    capabilities.every((wanted) => model.capabilities.some((one) => capabilitySlug(one) === wanted))
  );
}

/** The contract's `provider` of a model is its owner; people also mean who serves it. A router is nobody else's. */
const isFrom = ({ owner, routes, router }: CatalogModel, wanted: string): boolean =>
  owner === wanted ||
  (router === undefined &&
    routes.some(
      ({ provider }) => provider.id === wanted || provider.name.toLowerCase() === wanted,
    ));

type Comparison = (left: CatalogModel, right: CatalogModel) => number;

function order(sort: ModelSort, { weeklyRequests }: ModelListOptions): Comparison {
  const byId: Comparison = (left, right) => compareText(left.id, right.id);
  if (sort === "name") return byId;
  if (sort === "added")
    return (left, right) => right.addedAtMs - left.addedAtMs || byId(left, right);
  const volume = (model: CatalogModel): number => weeklyRequests?.(model.id) ?? 0;
  return (left, right) => volume(right) - volume(left) || byId(left, right);
}
