import type { GatewayFacts } from "../../canonical/gateway-facts.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  totalCacheWrites,
  totalInputTokens,
  totalOutputTokens,
  type MeteredUsage,
  type Usage,
} from "../../canonical/usage.ts";

/** `usage` of a chat answer: totals that include their details, computed and not trusted, and the charge. */
export function encodeUsage({ usage }: MeteredUsage, gateway: GatewayFacts = {}): JsonObject {
  const prompt = totalInputTokens(usage);
  const completion = totalOutputTokens(usage);
  const { costUsd, upstreamCostUsd } = gateway;
  const fields: Record<string, JsonValue> = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
  const promptDetails = knownCounts(promptNames, usage);
  if (promptDetails !== undefined) fields.prompt_tokens_details = promptDetails;
  const completionDetails = knownCounts(completionNames, usage);
  if (completionDetails !== undefined) fields.completion_tokens_details = completionDetails;
  if (costUsd !== undefined) fields.cost = costUsd;
  if (upstreamCostUsd !== undefined)
    fields.cost_details = { upstream_inference_cost: upstreamCostUsd };
  return fields;
}

type CountNames = readonly (readonly [name: string, count: (usage: Usage) => number | undefined])[];

const promptNames: CountNames = [
  ["cached_tokens", (usage) => usage.cacheReadTokens],
  ["cache_write_tokens", totalCacheWrites],
  ["audio_tokens", (usage) => usage.inputAudioTokens],
  ["image_tokens", (usage) => usage.inputImageTokens],
];
const completionNames: CountNames = [
  ["reasoning_tokens", (usage) => usage.reasoningTokens],
  ["audio_tokens", (usage) => usage.outputAudioTokens],
  ["image_tokens", (usage) => usage.outputImageTokens],
];

/** The counts that are known; undefined when none is. */
function knownCounts(names: CountNames, usage: Usage): JsonObject | undefined {
  let known: Record<string, number> | undefined;
  for (const [name, count] of names) {
    const value = count(usage);
    if (value !== undefined) (known ??= {})[name] = value;
  }
  return known;
}
