import type { GatewayFacts } from "../../canonical/gateway-facts.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { totalInputTokens, totalOutputTokens, type MeteredUsage, type Usage } from "../../canonical/usage.ts";
import { withoutUndefined } from "../without-undefined.ts";

/** `usage` of a chat answer: totals that include their details, computed and not trusted, and the charge. */
export function encodeUsage({ usage }: MeteredUsage, gateway: GatewayFacts = {}): JsonObject {
  const prompt = totalInputTokens(usage);
  const completion = totalOutputTokens(usage);
  return withoutUndefined<JsonObject>({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: filled({
      cached_tokens: usage.cacheReadTokens,
      cache_write_tokens: cacheWrites(usage),
      audio_tokens: usage.inputAudioTokens,
      image_tokens: usage.inputImageTokens,
    }),
    completion_tokens_details: filled({
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: usage.outputAudioTokens,
      image_tokens: usage.outputImageTokens,
    }),
    cost: gateway.costUsd,
    cost_details: gateway.upstreamCostUsd === undefined ? undefined : { upstream_inference_cost: gateway.upstreamCostUsd },
  });
}

const cacheWrites = ({ cacheWriteTokens, cacheWriteOneHourTokens }: Usage): number | undefined =>
  cacheWriteTokens === undefined && cacheWriteOneHourTokens === undefined
    ? undefined
    : (cacheWriteTokens ?? 0) + (cacheWriteOneHourTokens ?? 0);

/** The counts that are known; undefined when none is. */
function filled(fields: JsonObject): JsonObject | undefined {
  const known = withoutUndefined<JsonObject>(fields);
  return Object.keys(known).length === 0 ? undefined : known;
}
