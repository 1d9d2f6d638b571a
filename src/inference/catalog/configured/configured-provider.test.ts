import { describe, expect, test } from "bun:test";
import { configuredProviderSchema, type ConfiguredProvider } from "./configured-provider.ts";

const acme = { id: "acme", base_url: "http://127.0.0.1:9000/v1" };
const large = { id: "acme/large" };

test("accepts every documented field", () => {
  const entry = {
    ...acme,
    name: "Acme Inference",
    description: "Ours",
    dialect: { chat: "openai-chat", embeddings: "cohere-embed", rerank: "cohere-rerank" },
    api_key: "${ACME_API_KEY}",
    like: "vllm",
    deviations: ["max_tokens", "replay_reasoning_content", "refuses_seed"],
    headers: { "x-team": "a" },
    data_policy: { zdr: true, data_collection: "deny", distillable_text: true },
    timeouts_ms: { connect: 5000, first_token: 60000, idle: 60000, total: 600000 },
    models: [
      {
        id: "acme/large",
        upstream_model: "large-v2",
        surface: "chat",
        display_name: "Acme Large",
        context_length: 131072,
        max_completion_tokens: 16384,
        quantization: "fp8",
        pricing: {
          prompt: "0.50",
          completion: "1.50",
          cache_read: "0.05",
          cache_write: "0.60",
          reasoning: "1.50",
        },
        capabilities: ["chat", "function-calling", "vision"],
        supported_parameters: ["tools", "reasoning_effort"],
        reasoning: { levels: ["low", "medium", "high"], default: "medium" },
      },
    ],
  };
  const parsed: ConfiguredProvider = configuredProviderSchema.parse(entry);
  expect(parsed).toEqual(entry as ConfiguredProvider);
});

test("converts model ids to lower case", () => {
  expect(
    configuredProviderSchema.parse({ ...acme, models: [{ id: "Acme/Large" }] }).models?.[0]?.id,
  ).toBe("acme/large");
});

test("accepts ids with dots", () => {
  expect(configuredProviderSchema.parse({ ...acme, id: "llama.cpp" }).id).toBe("llama.cpp");
});

test.each(["embeddings", "rerank", "decisions"])("%s need no price of output", (surface) => {
  const entry = { ...acme, models: [{ ...large, surface, pricing: { prompt: "1" } }] };
  expect(configuredProviderSchema.safeParse(entry).success).toBe(true);
});

test("does not require the address of a built-in provider", () => {
  expect(configuredProviderSchema.safeParse({ id: "groq" }).success).toBe(true);
});

describe("refuses and names the path for", () => {
  test.each<[string, object, string]>([
    ["an unknown key", { ...acme, base_ulr: "x" }, ""],
    ["an unknown key of a model", { ...acme, models: [{ ...large, price: 1 }] }, "models.0"],
    [
      "an unknown key of a price",
      { ...acme, models: [{ ...large, pricing: { prompt: 1, completion: 1, input: 1 } }] },
      "models.0.pricing",
    ],
    ["a new provider without an address", { id: "acme" }, "base_url"],
    ["an unknown provider in like", { ...acme, like: "vlm" }, "like"],
    [
      "an unknown provider deviation",
      { ...acme, deviations: ["max_tokens", "maxtokens"] },
      "deviations.1",
    ],
    [
      "a deviation that refuses a required field",
      { ...acme, deviations: ["refuses_messages"] },
      "deviations.0",
    ],
    [
      "deviations that contradict each other",
      { ...acme, deviations: ["max_tokens", "max_completion_tokens"] },
      "deviations.1",
    ],
    ["an id that is not a slug", { ...acme, id: "Acme Inference" }, "id"],
    ["an unknown dialect", { ...acme, dialect: "soap" }, "dialect"],
    ["a dialect of another surface", { ...acme, dialect: { rerank: "openai-chat" } }, "dialect"],
    ["a model id without an owner", { ...acme, models: [{ id: "large" }] }, "models.0.id"],
    ["a duplicate model", { ...acme, models: [large, large] }, "models.1.id"],
    [
      "a price below zero",
      { ...acme, models: [{ ...large, pricing: { prompt: "-1", completion: "1" } }] },
      "models.0.pricing.prompt",
    ],
    [
      "a price that is not a number",
      { ...acme, models: [{ ...large, pricing: { prompt: "cheap", completion: 1 } }] },
      "models.0.pricing.prompt",
    ],
    [
      "an incomplete price",
      { ...acme, models: [{ ...large, pricing: { prompt: "1" } }] },
      "models.0.pricing.completion",
    ],
    [
      "embeddings without a price of input",
      { ...acme, models: [{ ...large, surface: "embeddings", pricing: { completion: "1" } }] },
      "models.0.pricing.prompt",
    ],
    ["a timeout of zero", { ...acme, timeouts_ms: { idle: 0 } }, "timeouts_ms.idle"],
    [
      "a default that is not a level",
      { ...acme, models: [{ ...large, reasoning: { levels: ["low"], default: "high" } }] },
      "models.0.reasoning.default",
    ],
  ])("%s", (_, entry, path) => {
    const parsed = configuredProviderSchema.safeParse(entry);
    expect(parsed.error?.issues.map((issue) => issue.path.join("."))).toEqual([path]);
  });
});
