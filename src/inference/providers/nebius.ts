import type { ProviderDefinition } from "./provider-definition.ts";

/** Nebius Token Factory. Source: https://tokenfactory.nebius.com */
export const nebius = {
  id: "nebius",
  name: "Nebius Token Factory",
  description: "Open models from data centres in Europe and the United States.",
  website: "https://tokenfactory.nebius.com",
  baseUrl: "https://api.tokenfactory.nebius.com/v1",
  credentialVariables: ["NEBIUS_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  quirks: { maxTokensField: "max_tokens" },
  naming: {},
} satisfies ProviderDefinition;
