import type { GatewayFacts, MeteredUsage } from "../../canonical/response.ts";
import type { JsonObject } from "../../canonical/json.ts";
import {
  totalCacheWrites,
  totalInputTokens,
  totalOutputTokens,
} from "../../../platform/kernel/usage.ts";
import { withoutUndefined } from "../wire-fields.ts";

/**
 * Encodes `usage` of a response: totals that are computed from their details, and the charge. The
 * three details that OpenAI's clients read without checking are always numbers.
 */
export function encodeUsage({ usage }: MeteredUsage, gateway: GatewayFacts = {}): JsonObject {
  const input = totalInputTokens(usage);
  const output = totalOutputTokens(usage);
  return withoutUndefined<JsonObject>({
    input_tokens: input,
    input_tokens_details: withoutUndefined<JsonObject>({
      cached_tokens: usage.cacheReadTokens ?? 0,
      cache_write_tokens: totalCacheWrites(usage) ?? 0,
      audio_tokens: usage.inputAudioTokens,
      image_tokens: usage.inputImageTokens,
    }),
    output_tokens: output,
    output_tokens_details: withoutUndefined<JsonObject>({
      reasoning_tokens: usage.reasoningTokens ?? 0,
      audio_tokens: usage.outputAudioTokens,
      image_tokens: usage.outputImageTokens,
    }),
    total_tokens: input + output,
    ...usageCost(gateway),
  });
}

/**
 * Returns what the gateway adds to usage: the charge, and whether the caller's own key was used.
 */
export const usageCost = ({ costUsd, isByok, upstreamCostUsd }: GatewayFacts): JsonObject =>
  withoutUndefined<JsonObject>({
    cost: costUsd,
    is_byok: costUsd === undefined ? undefined : (isByok ?? false),
    cost_details:
      upstreamCostUsd === undefined ? undefined : { upstream_inference_cost: upstreamCostUsd },
  });
