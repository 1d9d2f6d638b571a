import { buildCatalog } from "../../src/inference/catalog/build-catalog.ts";
import type { CatalogSnapshot } from "../../src/inference/catalog/model.ts";
import { provider } from "./gateway.ts";
import { noFacts } from "./no-facts.ts";

const makers = [
  "openai",
  "anthropic",
  "google",
  "x-ai",
  "deepseek",
  "qwen",
  "z-ai",
  "mistralai",
  "minimax",
  "acme",
];
/** Returns the id of the n-th model; every twentieth is free. */
export const modelIdAt = (index: number): string =>
  `${makers[index % makers.length]}/model-${index}${index % 20 === 19 ? ":free" : ""}`;

function modelAt(index: number, providerIndex: number): Record<string, unknown> {
  const price = index % 20 === 19 ? "0" : String(1 + (index % 7) + providerIndex / 100);
  return {
    id: modelIdAt(index),
    upstream_model: `wire-${index}`,
    context_length: 32_000 * (1 + (index % 32)),
    pricing: { prompt: price, completion: price },
    quantization: ["fp8", "bf16", "int4"][providerIndex % 3],
    capabilities: [
      "chat",
      "function-calling",
      ...(index % 2 === 0 ? ["vision"] : []),
      ...(index % 3 === 0 ? ["reasoning"] : []),
    ],
    supported_parameters: [
      "tools",
      "tool_choice",
      "response_format",
      "temperature",
      "reasoning_effort",
    ],
  };
}

/**
 * Returns a catalog of this many models, each at this many of fifty providers, with the pools of
 * routing presets that result.
 */
export function largeCatalog({
  models,
  routesPerModel,
}: {
  models: number;
  routesPerModel: number;
}): CatalogSnapshot {
  const providerCount = 50;
  const served: Record<string, unknown>[][] = Array.from({ length: providerCount }, () => []);
  for (let index = 0; index < models; index += 1) {
    for (let route = 0; route < routesPerModel; route += 1) {
      const at = (index * 7 + route) % providerCount;
      served[at]?.push(modelAt(index, at));
    }
  }
  return buildCatalog({
    environment: {},
    nowMs: 0,
    facts: noFacts,
    configuredProviders: served.map((own, index) =>
      provider({
        id: `p${index}`,
        base_url: `http://p${index}.test/v1`,
        dialect: "openai-chat",
        api_key: "k",
        models: own,
        data_policy: { zdr: index % 2 === 0 },
      }),
    ),
  });
}
