import type { ProviderDefinition } from "./provider-definition.ts";

/** DeepInfra. Source: https://deepinfra.com */
export const deepinfra = {
  id: "deepinfra",
  name: "DeepInfra",
  description: "Open models at low prices, serverless.",
  website: "https://deepinfra.com",
  baseUrl: "https://api.deepinfra.com/v1/openai",
  credentialVariables: ["DEEPINFRA_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
