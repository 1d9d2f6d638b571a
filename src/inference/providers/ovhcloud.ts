import type { ProviderDefinition } from "./provider-definition.ts";

/** OVHcloud AI Endpoints. Source: https://www.ovhcloud.com/en/public-cloud/ai-endpoints */
export const ovhcloud = {
  id: "ovhcloud",
  name: "OVHcloud AI Endpoints",
  description: "Open models from data centres in Europe.",
  website: "https://www.ovhcloud.com/en/public-cloud/ai-endpoints",
  baseUrl: "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1",
  credentialVariables: ["OVHCLOUD_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
