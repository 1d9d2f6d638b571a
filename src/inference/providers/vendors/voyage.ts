import type { ProviderDefinition } from "../provider-definition.ts";

/** Voyage AI. Source: https://www.voyageai.com */
export const voyage = {
  id: "voyage",
  name: "Voyage AI",
  description: "Maker of embedding and reranking models for retrieval.",
  website: "https://www.voyageai.com",
  baseUrl: "https://api.voyageai.com/v1",
  credentialVariables: ["VOYAGE_API_KEY"],
  dialects: { embeddings: "voyage-embeddings", rerank: "voyage-rerank" },
  naming: { maker: "voyage" },
} satisfies ProviderDefinition;
