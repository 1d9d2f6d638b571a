import { describe, expect, test } from "bun:test";
import { configuredProviderSchema, type ConfiguredProvider } from "./configured-provider.ts";

const acme = { id: "acme", base_url: "http://127.0.0.1:9000/v1" };
const large = { id: "acme/large" };

test("takes everything that the documentation shows", () => {
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

test("ids of models are read in lower case", () => {
  expect(
    configuredProviderSchema.parse({ ...acme, models: [{ id: "Acme/Large" }] }).models?.[0]?.id,
  ).toBe("acme/large");
});

test("ids may have dots", () => {
  expect(configuredProviderSchema.parse({ ...acme, id: "llama.cpp" }).id).toBe("llama.cpp");
});

test("a built-in provider needs no address", () => {
  expect(configuredProviderSchema.safeParse({ id: "groq" }).success).toBe(true);
});

describe("refuses, and names the place", () => {
  test.each<[string, object, string]>([
    ["an unknown key", { ...acme, base_ulr: "x" }, ""],
    ["an unknown key of a model", { ...acme, models: [{ ...large, price: 1 }] }, "models.0"],
    [
      "an unknown key of a price",
      { ...acme, models: [{ ...large, pricing: { prompt: 1, completion: 1, input: 1 } }] },
      "models.0.pricing",
    ],
    ["a new provider without an address", { id: "acme" }, "base_url"],
    ["a provider that it cannot be like", { ...acme, like: "vlm" }, "like"],
    [
      "a deviation that no provider has",
      { ...acme, deviations: ["max_tokens", "maxtokens"] },
      "deviations.1",
    ],
    [
      "a field without which there is no request",
      { ...acme, deviations: ["refuses_messages"] },
      "deviations.0",
    ],
    [
      "deviations that contradict each other",
      { ...acme, deviations: ["max_tokens", "max_completion_tokens"] },
      "deviations.1",
    ],
    ["an id that is no slug", { ...acme, id: "Acme Inference" }, "id"],
    ["a dialect that nobody speaks", { ...acme, dialect: "soap" }, "dialect"],
    ["a dialect of another surface", { ...acme, dialect: { rerank: "openai-chat" } }, "dialect"],
    ["a model id without an owner", { ...acme, models: [{ id: "large" }] }, "models.0.id"],
    ["the same model twice", { ...acme, models: [large, large] }, "models.1.id"],
    [
      "a price below zero",
      { ...acme, models: [{ ...large, pricing: { prompt: "-1", completion: "1" } }] },
      "models.0.pricing.prompt",
    ],
    [
      "a price that is no number",
      { ...acme, models: [{ ...large, pricing: { prompt: "cheap", completion: 1 } }] },
      "models.0.pricing.prompt",
    ],
    [
      "half a price",
      { ...acme, models: [{ ...large, pricing: { prompt: "1" } }] },
      "models.0.pricing.completion",
    ],
    ["a timeout of zero", { ...acme, timeouts_ms: { idle: 0 } }, "timeouts_ms.idle"],
    [
      "a default that is no level",
      { ...acme, models: [{ ...large, reasoning: { levels: ["low"], default: "high" } }] },
      "models.0.reasoning.default",
    ],
  ])("%s", (_, entry, path) => {
    const parsed = configuredProviderSchema.safeParse(entry);
    expect(parsed.error?.issues.map((issue) => issue.path.join("."))).toEqual([path]);
  });
});
