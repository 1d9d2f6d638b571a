import type { Surface } from "../providers/provider-definition.ts";

/** A model that its maker serves and the facts source does not list for it. */
export interface MakerModel {
  provider: string;
  upstream: string;
  name: string;
  surface: Surface;
  context: number;
  /** True where the vendor charges nothing. */
  free?: true;
}

/**
 * Retrieval and moderation models by name and context, from their vendors' pages (2026-07). They have
 * no price here: callers with their own key can use them, others once the operator prices them.
 */
export const makerModels: readonly MakerModel[] = [
  // docs.voyageai.com/docs/embeddings and /reranker
  { provider: "voyage", upstream: "voyage-4-large", name: "Voyage 4 Large", surface: "embeddings", context: 32_000 },
  { provider: "voyage", upstream: "voyage-4", name: "Voyage 4", surface: "embeddings", context: 32_000 },
  { provider: "voyage", upstream: "voyage-4-lite", name: "Voyage 4 Lite", surface: "embeddings", context: 32_000 },
  { provider: "voyage", upstream: "voyage-3-large", name: "Voyage 3 Large", surface: "embeddings", context: 32_000 },
  { provider: "voyage", upstream: "voyage-3.5", name: "Voyage 3.5", surface: "embeddings", context: 32_000 },
  { provider: "voyage", upstream: "voyage-3.5-lite", name: "Voyage 3.5 Lite", surface: "embeddings", context: 32_000 },
  { provider: "voyage", upstream: "voyage-code-3", name: "Voyage Code 3", surface: "embeddings", context: 32_000 },
  { provider: "voyage", upstream: "voyage-finance-2", name: "Voyage Finance 2", surface: "embeddings", context: 32_000 },
  { provider: "voyage", upstream: "voyage-law-2", name: "Voyage Law 2", surface: "embeddings", context: 16_000 },
  { provider: "voyage", upstream: "rerank-2.5", name: "Voyage Rerank 2.5", surface: "rerank", context: 32_000 },
  { provider: "voyage", upstream: "rerank-2.5-lite", name: "Voyage Rerank 2.5 Lite", surface: "rerank", context: 32_000 },
  // jina.ai/embeddings and /reranker
  { provider: "jina", upstream: "jina-embeddings-v4", name: "Jina Embeddings v4", surface: "embeddings", context: 32_768 },
  { provider: "jina", upstream: "jina-embeddings-v3", name: "Jina Embeddings v3", surface: "embeddings", context: 8_192 },
  { provider: "jina", upstream: "jina-reranker-v3", name: "Jina Reranker v3", surface: "rerank", context: 131_072 },
  { provider: "jina", upstream: "jina-reranker-m0", name: "Jina Reranker m0", surface: "rerank", context: 10_240 },
  // docs.cohere.com/docs/models
  { provider: "cohere", upstream: "embed-v4.0", name: "Embed 4", surface: "embeddings", context: 128_000 },
  { provider: "cohere", upstream: "embed-english-v3.0", name: "Embed English 3", surface: "embeddings", context: 512 },
  {
    provider: "cohere", upstream: "embed-multilingual-v3.0", name: "Embed Multilingual 3", surface: "embeddings",
    context: 512,
  },
  { provider: "cohere", upstream: "rerank-v4.0-pro", name: "Rerank 4 Pro", surface: "rerank", context: 32_768 },
  { provider: "cohere", upstream: "rerank-v4.0-fast", name: "Rerank 4 Fast", surface: "rerank", context: 32_768 },
  { provider: "cohere", upstream: "rerank-v3.5", name: "Rerank 3.5", surface: "rerank", context: 4_096 },
  // docs.mistral.ai/capabilities/embeddings
  { provider: "mistral", upstream: "codestral-embed", name: "Codestral Embed", surface: "embeddings", context: 8_192 },
  // platform.openai.com/docs/guides/moderation: free of charge.
  {
    provider: "openai", upstream: "omni-moderation-latest", name: "Omni Moderation", surface: "moderations",
    context: 32_768, free: true,
  },
];
