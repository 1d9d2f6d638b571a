import type { GatewayFacts } from "../../canonical/gateway-facts.ts";
import type { JsonObject } from "../../canonical/json.ts";
import {
  totalCacheWrites,
  totalOutputTokens,
  type MeteredUsage,
  type Usage,
} from "../../canonical/usage.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { fieldsOfOwn } from "./own-fields.ts";

/** `usage` of an answer: uncached input apart from cached, thinking within the output, and the charge. */
export function encodeUsage(
  { usage, extensions }: MeteredUsage,
  gateway: GatewayFacts = {},
): JsonObject {
  return withoutUndefined<JsonObject>({
    input_tokens:
      (usage.inputTokens ?? 0) + (usage.inputAudioTokens ?? 0) + (usage.inputImageTokens ?? 0),
    ...cacheCounts(usage),
    output_tokens: totalOutputTokens(usage),
    output_tokens_details:
      usage.reasoningTokens === undefined ? undefined : { thinking_tokens: usage.reasoningTokens },
    ...fieldsOfOwn(extensions),
    cost: gateway.costUsd,
    cost_details:
      gateway.upstreamCostUsd === undefined
        ? undefined
        : { upstream_inference_cost: gateway.upstreamCostUsd },
  });
}

function cacheCounts(usage: Usage): JsonObject {
  const { cacheReadTokens, cacheWriteTokens, cacheWriteOneHourTokens } = usage;
  return {
    cache_creation_input_tokens: totalCacheWrites(usage),
    cache_read_input_tokens: cacheReadTokens,
    cache_creation:
      cacheWriteOneHourTokens === undefined
        ? undefined
        : {
            ephemeral_5m_input_tokens: cacheWriteTokens ?? 0,
            ephemeral_1h_input_tokens: cacheWriteOneHourTokens,
          },
  };
}
