import type { ProviderDefinition } from "./provider-definition.ts";

/** Scaleway. Source: https://www.scaleway.com/en/generative-apis */
export const scaleway = {
  id: "scaleway",
  name: "Scaleway",
  description: "Open models from data centres in France.",
  website: "https://www.scaleway.com/en/generative-apis",
  baseUrl: "https://api.scaleway.ai/v1",
  credentialVariables: ["SCALEWAY_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
