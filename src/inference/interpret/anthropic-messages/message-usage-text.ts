import { editMembers } from "../../../platform/lib/json-members.ts";
import { usdFromNano } from "../../../platform/lib/money.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import { encodeUsage } from "../../dialects/anthropic-messages/encode-usage.ts";

/**
 * JSON text of the usage that the client is shown: the provider's own, with the charge in USD and the
 * provider's cost where it is known; ours where the provider's cannot be shown.
 */
export function pricedUsageText(options: {
  original: string | undefined;
  metered: MeteredUsage;
  chargedNano: bigint;
}): string {
  const { original, metered, chargedNano } = options;
  const usable = original?.startsWith("{") === true && !metered.clamped && !metered.estimated;
  const base = usable ? original : JSON.stringify(encodeUsage(metered));
  const { providerCostUsd } = metered;
  return editMembers(
    base,
    new Map<string, string | undefined>([
      ["cost", JSON.stringify(usdFromNano(chargedNano))],
      [
        "cost_details",
        providerCostUsd === undefined
          ? undefined
          : JSON.stringify({ upstream_inference_cost: providerCostUsd }),
      ],
    ]),
  );
}

/** Usage that is not the last one, without the provider's own cost: `cost` is what the client is charged. */
export const withoutCost = (usage: string): string =>
  usage.includes('"cost')
    ? editMembers(
        usage,
        new Map([
          ["cost", undefined],
          ["cost_details", undefined],
        ]),
      )
    : usage;
