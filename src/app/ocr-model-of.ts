import type { CatalogModel, CatalogSnapshot } from "../inference/catalog/model.ts";
import { findModel } from "../inference/routing/resolve-models.ts";
import { ConfigurationError } from "../platform/config/configuration-error.ts";

/** The catalog's id of the model that `ocr.model` of switchyard.yaml names. Throws `ConfigurationError` for one that cannot read pages. */
export function ocrModelOf(id: string | undefined, catalog: CatalogSnapshot): string | undefined {
  if (id === undefined) return undefined;
  const model = findModel(catalog, id);
  const reason = unfit(model);
  if (model === undefined || reason !== undefined) {
    const message = `${reason ?? "there is no such model in the catalog"}, got ${JSON.stringify(id)}`;
    throw new ConfigurationError([{ key: "ocr.model", message }]);
  }
  return model.id;
}

function unfit(model: CatalogModel | undefined): string | undefined {
  if (model?.router !== undefined) return "expected one model; this stands for a pool of them";
  if (model !== undefined && model.surface !== "chat")
    return `expected a model that chats; this one serves ${model.surface}`;
  return undefined;
}
