import { anthropicModelEntry } from "./anthropic-model-list.ts";
import { modelObject } from "../../inference/catalog/model-object.ts";
import type { Telling } from "./sub-route.ts";

/** One model as the caller's client reads it; Anthropic's clients are known by their `anthropic-version` header. */
export const viewModel: Telling = (model, { inference }, { request }) =>
  request.headers.has("anthropic-version")
    ? anthropicModelEntry(model)
    : modelObject(model, { reachable: (route) => inference.isServable(route, model) });

/** The way out of a sub-route's path for models that are called like the sub-route. */
export const modelByEncodedId = (name: string): { name: string; tell: Telling } => ({
  name,
  tell: viewModel,
});
