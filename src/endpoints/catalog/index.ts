import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { metricsRoutes } from "./model-metrics.ts";
import { pricesRoutes } from "./model-prices.ts";
import { privacyRoutes } from "./model-privacy.ts";
import { listModelEndpoints, listZeroRetentionEndpoints } from "./model-endpoints.ts";
import { uptimeRoutes } from "./model-uptime.ts";
import { countModels, getModel, getModelByEncodedId, listModels } from "./models.ts";
import { getModelData, listEmbeddingModels, listOwnModels } from "./openrouter-models.ts";
import { recommendModelsFor } from "./recommend.ts";
import { providerLogo, listProviders } from "./providers.ts";
import { previewRoutes } from "./routing-preview.ts";

/** Models and providers, as the contract, the dashboard and other vendors' clients list them. */
export const catalogEndpoints: readonly Endpoint<Dependencies>[] = [
  listModels,
  countModels,
  recommendModelsFor,
  getModel,
  getModelByEncodedId,
  listProviders,
  providerLogo,
  ...previewRoutes,
  ...metricsRoutes,
  ...privacyRoutes,
  ...pricesRoutes,
  ...uptimeRoutes,
  listModelEndpoints,
  listZeroRetentionEndpoints,
  listOwnModels,
  listEmbeddingModels,
  getModelData,
];
