import type { CatalogModel, CatalogSnapshot } from "../catalog/model.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { SortKey } from "./provider-preferences.ts";

const suffixSorts: Record<string, SortKey> = { nitro: "throughput", floor: "price", fast: "latency", exacto: "exacto" };

/** A model id as asked for: the catalog's model and the sort that a suffix shortcut stands for. */
export interface ResolvedModel {
  model: CatalogModel;
  sort?: SortKey;
}

/** Finds a model by id, with or without a suffix shortcut (rule 6 of the provider object). */
export function resolveModel(catalog: CatalogSnapshot, id: string): ResolvedModel {
  const exact = catalog.models.get(id) ?? catalog.models.get(id.toLowerCase());
  const separator = id.lastIndexOf(":");
  const sort = separator < 0 ? undefined : suffixSorts[id.slice(separator + 1).toLowerCase()];
  const model = exact ?? (sort === undefined ? undefined : catalog.models.get(id.slice(0, separator).toLowerCase()));
  if (model === undefined) {
    throw new GatewayError("model_unavailable", `The model ${JSON.stringify(id)} is not in the catalog. GET /models lists what is.`, { param: "model" });
  }
  if (model.comingSoon) {
    throw new GatewayError("model_unavailable", `The model ${model.id} is announced but not live yet.`, { param: "model" });
  }
  return exact === undefined && sort !== undefined ? { model, sort } : { model };
}
