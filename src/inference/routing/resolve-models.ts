import type { CatalogModel, CatalogSnapshot } from "../catalog/model.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { SortKey } from "./provider-preferences.ts";

const suffixSorts: Record<string, SortKey> = { nitro: "throughput", floor: "price", fast: "latency", exacto: "exacto" };

/** A model id as asked for: the catalog's model and the sort that a suffix shortcut stands for. */
export interface ResolvedModel {
  model: CatalogModel;
  sort?: SortKey;
}

/** A model by its id or one of its other names, whatever the case; undefined when there is none. */
export function findModel(catalog: CatalogSnapshot, id: string): CatalogModel | undefined {
  const exact = catalog.models.get(id);
  if (exact !== undefined) return exact;
  const lower = id.toLowerCase();
  return catalog.models.get(lower) ?? catalog.models.get(catalog.aliases?.get(lower) ?? "");
}

/** Finds a model by id, with or without a suffix shortcut (rule 6 of the provider object). */
export function resolveModel(catalog: CatalogSnapshot, id: string): ResolvedModel {
  const exact = findModel(catalog, id);
  const separator = id.lastIndexOf(":");
  const sort = separator < 0 ? undefined : suffixSorts[id.slice(separator + 1).toLowerCase()];
  const model = exact ?? (sort === undefined ? undefined : findModel(catalog, id.slice(0, separator)));
  if (model === undefined) {
    throw new GatewayError("model_unavailable", `The model ${JSON.stringify(id)} is not in the catalog. GET /models lists what is.`, { param: "model" });
  }
  if (model.comingSoon) {
    throw new GatewayError("model_unavailable", `The model ${model.id} is announced but not live yet.`, { param: "model" });
  }
  return exact === undefined && sort !== undefined ? { model, sort } : { model };
}
