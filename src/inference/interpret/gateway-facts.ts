import { usdFromNano } from "../../platform/lib/money.ts";
import type { GatewayFacts } from "../canonical/gateway-facts.ts";
import type { JsonObject } from "../canonical/json.ts";
import type { MeteredUsage } from "../canonical/usage.ts";
import { fallbackBlock, type ModelFallback } from "./model-fallback.ts";

/** What the gateway adds to a translated answer. */
export function asGatewayFacts({
  chargedNano,
  isByok,
  metered,
  fallback,
  metadataText,
}: {
  chargedNano: bigint;
  isByok?: boolean | undefined;
  metered: MeteredUsage;
  fallback: ModelFallback | undefined;
  /** JSON text of the metadata object; undefined where the dialect's whole answers have none. */
  metadataText: string | undefined;
}): GatewayFacts {
  return {
    costUsd: usdFromNano(chargedNano),
    ...(isByok === true && { isByok }),
    ...(metered.providerCostUsd !== undefined && { upstreamCostUsd: metered.providerCostUsd }),
    ...(fallback !== undefined && {
      requestedModel: fallback.requestedModel,
      fallback: fallbackBlock(fallback),
    }),
    ...(metadataText !== undefined && { metadata: JSON.parse(metadataText) as JsonObject }),
  };
}
