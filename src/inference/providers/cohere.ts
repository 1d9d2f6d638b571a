import type { ProviderDefinition } from "./provider-definition.ts";

/** Cohere. Source: https://cohere.com */
export const cohere = {
  id: "cohere",
  name: "Cohere",
  description: "Maker of the Command models and of Embed and Rerank.",
  website: "https://cohere.com",
  // The compatibility API. Rerank is not part of it.
  baseUrl: "https://api.cohere.ai/compatibility/v1",
  surfaceBaseUrls: { rerank: "https://api.cohere.com/v2" },
  credentialVariables: ["COHERE_API_KEY", "CO_API_KEY"],
  dialects: {
    chat: "openai-chat",
    embeddings: "openai-embeddings",
    rerank: "cohere-rerank",
  },
  // The compatibility API refuses `stream_options`.
  quirks: { maxTokensField: "max_tokens", noStreamOptions: true },
  naming: { maker: "cohere" },
} satisfies ProviderDefinition;
