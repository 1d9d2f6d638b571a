import type { ProviderDefinition } from "../provider-definition.ts";

/** Jina AI. Source: https://jina.ai */
export const jina = {
  id: "jina",
  name: "Jina AI",
  description: "Maker of multilingual embedding and reranking models.",
  website: "https://jina.ai",
  baseUrl: "https://api.jina.ai/v1",
  credentialVariables: ["JINA_API_KEY"],
  dialects: { embeddings: "jina-embeddings", rerank: "jina-rerank" },
  naming: { maker: "jina" },
} satisfies ProviderDefinition;
