import type { Surface } from "../../providers/provider-definition.ts";
import type { FactPrices, FactRow } from "../catalog-facts.ts";

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
 * Retrieval and moderation models by name and context, from their vendors' pages (2026-07). They
 * have no price here: callers with their own key can use them, others once the operator prices
 * them.
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

/** A chat model that its maker released after the snapshot of the facts source. */
export type NewerModel = Omit<FactRow, "id">;

const anthropicTraits = {
  provider: "anthropic",
  surface: "chat",
  context: 1_000_000,
  max_output: 128_000,
  capabilities: ["chat", "function-calling", "vision", "document-input", "reasoning"],
  parameters: ["max_tokens", "stop", "stream", "tools", "tool_choice", "reasoning_effort"],
  efforts: ["low", "medium", "high", "xhigh", "max"],
} satisfies Partial<NewerModel>;

/**
 * Anthropic's prices: those of writes are 1.25 times the input's for five minutes and twice for an
 * hour, those of reads its own.
 */
const claude = (upstream: string, name: string, prices: FactPrices): NewerModel => ({
  ...anthropicTraits,
  upstream,
  name,
  prices,
});

const openaiTraits = {
  provider: "openai",
  surface: "chat",
  context: 1_050_000,
  max_output: 128_000,
  capabilities: [
    "chat",
    "function-calling",
    "vision",
    "document-input",
    "structured-output",
    "reasoning",
  ],
  parameters: [
    "max_tokens",
    "stop",
    "stream",
    "tools",
    "tool_choice",
    "response_format",
    "structured_outputs",
    "reasoning_effort",
  ],
  efforts: ["none", "low", "medium", "high", "xhigh"],
} satisfies Partial<NewerModel>;

/**
 * OpenAI's prices: above 272,000 tokens of input a request costs twice as much for its input and
 * half as much again for its output.
 */
const gpt = (
  upstream: string,
  name: string,
  [prices, long]: readonly [FactPrices, FactPrices],
): NewerModel => ({
  ...openaiTraits,
  upstream,
  name,
  prices,
  tiers: [{ above: 272_000, prices: long }],
});

/**
 * What agents ask for by default and the snapshot is too old for. Prices and windows from the npm
 * package @pydantic/genai-prices 0.1.8 (MIT, 2026-09-23), which cites the makers' price pages; the
 * largest output is that of the models before them, and what Claude Code 2.1.329 asks for. A row of
 * the facts source replaces the one here.
 */
export const newerModels: readonly NewerModel[] = [
  claude("claude-opus-5", "Claude Opus 5", {
    input: "5",
    output: "25",
    cache_read: "0.5",
    cache_write: "6.25",
    cache_write_1h: "10",
  }),
  claude("claude-opus-5-5", "Claude Opus 5.5", {
    input: "4",
    output: "20",
    cache_read: "0.2",
    cache_write: "5",
    cache_write_1h: "8",
  }),
  claude("claude-fable-5-1", "Claude Fable 5.1", {
    input: "10",
    output: "50",
    cache_read: "0.25",
    cache_write: "12.5",
    cache_write_1h: "20",
  }),
  gpt("gpt-5.6-luna", "GPT-5.6 Luna", [
    { input: "0.2", output: "1.2", cache_read: "0.02", cache_write: "0.25" },
    { input: "0.4", output: "1.8", cache_read: "0.04", cache_write: "0.5" },
  ]),
  gpt("gpt-5.6-terra", "GPT-5.6 Terra", [
    { input: "2", output: "12", cache_read: "0.2", cache_write: "2.5" },
    { input: "4", output: "18", cache_read: "0.4", cache_write: "5" },
  ]),
  gpt("gpt-5.6-sol", "GPT-5.6 Sol", [
    { input: "4", output: "20", cache_read: "0.4", cache_write: "5" },
    { input: "8", output: "30", cache_read: "0.8", cache_write: "10" },
  ]),
  gpt("gpt-6-luna", "GPT-6 Luna", [
    { input: "0.1", output: "0.5", cache_read: "0.01", cache_write: "0.125" },
    { input: "0.2", output: "0.75", cache_read: "0.02", cache_write: "0.25" },
  ]),
  gpt("gpt-6-sol", "GPT-6 Sol", [
    { input: "2", output: "10", cache_read: "0.2", cache_write: "2.5" },
    { input: "4", output: "15", cache_read: "0.4", cache_write: "5" },
  ]),
  gpt("gpt-6-astra", "GPT-6 Astra", [
    { input: "10", output: "50", cache_read: "1", cache_write: "12.5" },
    { input: "20", output: "75", cache_read: "2", cache_write: "25" },
  ]),
];
