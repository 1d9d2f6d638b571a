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

type Listed = readonly [upstream: string, name: string, context: number];

const served = (provider: string, surface: Surface, models: readonly Listed[]): MakerModel[] =>
  models.map(([upstream, name, context]) => ({ provider, upstream, name, surface, context }));

/**
 * Retrieval and moderation models by name and context, from their vendors' pages (2026-07). They have
 * no price here: callers with their own key can use them, others once the operator prices them.
 */
export const makerModels: readonly MakerModel[] = [
  // docs.voyageai.com/docs/embeddings and /reranker
  ...served("voyage", "embeddings", [
    ["voyage-4-large", "Voyage 4 Large", 32_000],
    ["voyage-4", "Voyage 4", 32_000],
    ["voyage-4-lite", "Voyage 4 Lite", 32_000],
    ["voyage-3-large", "Voyage 3 Large", 32_000],
    ["voyage-3.5", "Voyage 3.5", 32_000],
    ["voyage-3.5-lite", "Voyage 3.5 Lite", 32_000],
    ["voyage-code-3", "Voyage Code 3", 32_000],
    ["voyage-finance-2", "Voyage Finance 2", 32_000],
    ["voyage-law-2", "Voyage Law 2", 16_000],
  ]),
  ...served("voyage", "rerank", [
    ["rerank-2.5", "Voyage Rerank 2.5", 32_000],
    ["rerank-2.5-lite", "Voyage Rerank 2.5 Lite", 32_000],
  ]),
  // jina.ai/embeddings and /reranker
  ...served("jina", "embeddings", [
    ["jina-embeddings-v4", "Jina Embeddings v4", 32_768],
    ["jina-embeddings-v3", "Jina Embeddings v3", 8_192],
  ]),
  ...served("jina", "rerank", [
    ["jina-reranker-v3", "Jina Reranker v3", 131_072],
    ["jina-reranker-m0", "Jina Reranker m0", 10_240],
  ]),
  // docs.cohere.com/docs/models
  ...served("cohere", "embeddings", [
    ["embed-v4.0", "Embed 4", 128_000],
    ["embed-english-v3.0", "Embed English 3", 512],
    ["embed-multilingual-v3.0", "Embed Multilingual 3", 512],
  ]),
  ...served("cohere", "rerank", [
    ["rerank-v4.0-pro", "Rerank 4 Pro", 32_768],
    ["rerank-v4.0-fast", "Rerank 4 Fast", 32_768],
    ["rerank-v3.5", "Rerank 3.5", 4_096],
  ]),
  // docs.mistral.ai/capabilities/embeddings
  ...served("mistral", "embeddings", [["codestral-embed", "Codestral Embed", 8_192]]),
  // platform.openai.com/docs/guides/moderation: free of charge.
  ...served("openai", "moderations", [["omni-moderation-latest", "Omni Moderation", 32_768]]).map(
    (model): MakerModel => ({ ...model, free: true }),
  ),
];
