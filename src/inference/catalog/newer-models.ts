import type { FactPrices, FactRow } from "./catalog-facts.ts";

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

/** Anthropic's prices: those of writes are 1.25 times the input's for five minutes and twice for an hour, those of reads its own. */
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

/** OpenAI's prices: above 272,000 tokens of input a request costs twice as much for its input and half as much again for its output. */
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
 * What agents ask for by default and the snapshot is too old for. Prices and windows from the npm package @pydantic/genai-prices 0.1.8
 * (MIT, 2026-09-23), which cites the makers' price pages; the largest output is that of the models before them, and what Claude
 * Code 2.1.329 asks for. A row of the facts source replaces the one here.
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
