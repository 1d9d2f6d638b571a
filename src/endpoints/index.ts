import type { Endpoint } from "../http/endpoint.ts";
import { credits } from "./account/credits.ts";
import { authKey, currentKey } from "./account/current-key.ts";
import { createKey, listKeys } from "./account/keys.ts";
import { countModels, getModel, getModelByEncodedId, listModels } from "./catalog/models.ts";
import { providerLogo } from "./catalog/provider-logo.ts";
import { listProviders } from "./catalog/providers.ts";
import type { Dependencies } from "./dependencies.ts";
import { chatCompletions } from "./inference/chat-completions.ts";
import { generationById, generationByQuery } from "./insights/generation.ts";
import { docs, openApi } from "./ops/documentation.ts";
import { healthz, metrics, readyz } from "./ops/liveness.ts";

/** The whole API on one screen. Routes, guard, OpenAPI and docs are made from it. */
export const endpoints: readonly Endpoint<Dependencies>[] = [
  // Inference
  chatCompletions,
  // Catalog
  listModels, countModels, getModel, getModelByEncodedId, listProviders, providerLogo,
  // Account
  createKey, listKeys, authKey, currentKey, credits,
  // Insights
  generationById, generationByQuery,
  // Operations
  openApi, docs, healthz, readyz, metrics,
];
