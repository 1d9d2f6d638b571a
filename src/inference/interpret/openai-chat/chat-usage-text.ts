import { editMembers } from "../../../platform/lib/json-members.ts";
import { usdFromNano } from "../../../platform/lib/money.ts";
import { totalInputTokens, totalOutputTokens, type MeteredUsage } from "../../canonical/usage.ts";

/** The chat form of a usage vector, for answers whose provider sent none or one that had to be clamped. */
function chatUsage({ usage }: MeteredUsage): Record<string, unknown> {
  const prompt = totalInputTokens(usage);
  const completion = totalOutputTokens(usage);
  const cacheWrite = (usage.cacheWriteTokens ?? 0) + (usage.cacheWriteOneHourTokens ?? 0);
  const details = {
    ...(usage.cacheReadTokens === undefined ? {} : { cached_tokens: usage.cacheReadTokens }),
    ...(cacheWrite === 0 ? {} : { cache_write_tokens: cacheWrite }),
  };
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(Object.keys(details).length === 0 ? {} : { prompt_tokens_details: details }),
    ...(usage.reasoningTokens === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: usage.reasoningTokens } }),
  };
}

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
  const usable =
    original !== undefined && original.startsWith("{") && !metered.clamped && !metered.estimated;
  const base = usable ? withTotals(original, metered) : JSON.stringify(chatUsage(metered));
  const cost = JSON.stringify(usdFromNano(chargedNano));
  // The usual usage has no cost of the provider's, so ours is simply its last member.
  if (base.endsWith("}") && base.length > 2 && !base.includes('"cost')) {
    const details =
      metered.providerCostUsd === undefined
        ? ""
        : `,"cost_details":${costDetails(metered.providerCostUsd)}`;
    return `${base.slice(0, -1)},"cost":${cost}${details}}`;
  }
  return editMembers(
    base,
    new Map<string, string | undefined>([
      ["cost", cost],
      [
        "cost_details",
        metered.providerCostUsd === undefined ? undefined : costDetails(metered.providerCostUsd),
      ],
    ]),
  );
}

/** The provider's usage with the three counts that every chat client reads: some name them otherwise, or send a total that is none. */
function withTotals(text: string, { usage }: MeteredUsage): string {
  const told = JSON.parse(text) as Record<string, unknown>;
  const {
    prompt_tokens: promptTold,
    completion_tokens: completionTold,
    total_tokens: totalTold,
  } = told;
  if (isCount(promptTold) && isCount(completionTold) && totalTold === promptTold + completionTold)
    return text;
  const [prompt, completion] = [totalInputTokens(usage), totalOutputTokens(usage)];
  const counts = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
  const edits = Object.entries(counts).filter(([name, count]) => told[name] !== count);
  return editMembers(text, new Map(edits.map(([name, count]) => [name, String(count)])));
}

const isCount = (value: unknown): value is number => typeof value === "number";

const costDetails = (upstreamCostUsd: number): string =>
  JSON.stringify({ upstream_inference_cost: upstreamCostUsd });
