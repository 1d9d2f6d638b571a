import { editMembers, scanMembers } from "../../../platform/kernel/json/json-members.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import type { GatewayFacts, MeteredUsage } from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  totalCacheWrites,
  totalInputTokens,
  totalOutputTokens,
  type Usage,
} from "../../../platform/kernel/usage.ts";
import { fieldsOf, readOpenaiUsage as readChatUsage, withTier } from "../shared/openai-fields.ts";

export { readChatUsage, withTier };

/**
 * Reads the usage of a chat response or chunk: in its usual place, or where Groq and Moonshot put
 * it in streams.
 */
export function readUsageOf(body: unknown): MeteredUsage | undefined {
  const fields = fieldsOf(body);
  return withTier(usageIn(fields), fields.service_tier);
}

function usageIn(fields: ReturnType<typeof fieldsOf>): MeteredUsage | undefined {
  if (fields.usage) return readChatUsage(fields.usage);
  if (fields.x_groq) return readChatUsage(fieldsOf(fields.x_groq).usage);
  const choice: unknown = Array.isArray(fields.choices) ? fields.choices[0] : undefined;
  return choice === undefined ? undefined : readChatUsage(fieldsOf(choice).usage);
}

/**
 * Encodes `usage` of a chat answer: totals that are computed from their details, and the charge.
 */
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

/** Returns the known counts; undefined when there is none. */
function knownCounts(names: CountNames, usage: Usage): JsonObject | undefined {
  let known: Record<string, number> | undefined;
  for (const [name, count] of names) {
    const value = count(usage);
    if (value !== undefined) (known ??= {})[name] = value;
  }
  return known;
}

/**
 * Returns the chat form of a usage vector, for answers whose provider sent none or one that had to
 * be clamped.
 */
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
 * Returns the JSON text of the usage that the client is shown: the provider's own, with the charge
 * in USD and the provider's cost where it is known; the gateway's where the provider's cannot be
 * shown.
 */
export function pricedUsageText(options: {
  /** The provider's usage as JSON text. */
  original: string | undefined;
  /** The same as a value, where it was parsed before. */
  reported?: unknown;
  metered: MeteredUsage;
  chargedNano: bigint;
}): string {
  const { original, reported, metered, chargedNano } = options;
  const usable =
    original !== undefined && original.startsWith("{") && !metered.clamped && !metered.estimated;
  const base = usable
    ? withTotals(original, { metered, reported })
    : JSON.stringify(chatUsage(metered));
  const cost = JSON.stringify(usdFromNano(chargedNano));
  // Usage usually has no cost of the provider's, so the charge is appended as its last member.
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

/**
 * Returns the provider's usage with the three counts that every chat client reads: some providers
 * name them differently, or send an invalid total.
 */
function withTotals(
  text: string,
  { metered: { usage }, reported }: { metered: MeteredUsage; reported: unknown },
): string {
  const written = (reported ?? JSON.parse(text)) as Record<string, unknown>;
  const {
    prompt_tokens: promptReported,
    completion_tokens: completionReported,
    total_tokens: totalReported,
  } = written;
  if (
    isCount(promptReported) &&
    isCount(completionReported) &&
    totalReported === promptReported + completionReported
  )
    return text;
  const [prompt, completion] = [totalInputTokens(usage), totalOutputTokens(usage)];
  const counts = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
  const edits = Object.entries(counts).filter(([name, count]) => written[name] !== count);
  return editMembers(text, new Map(edits.map(([name, count]) => [name, String(count)])));
}

const isCount = (value: unknown): value is number => typeof value === "number";

const costDetails = (upstreamCostUsd: number): string =>
  JSON.stringify({ upstream_inference_cost: upstreamCostUsd });

/** Returns whether usage reports the provider's own cost. */
export const reportsCost = (usage: unknown): boolean =>
  typeof usage === "object" && usage !== null && ("cost" in usage || "cost_details" in usage);

/**
 * Removes the provider's own cost from a chunk whose usage is not the last one: `cost` is what the
 * client is charged.
 */
export function withoutCost(text: string): string {
  const usage = scanMembers(text).find(({ key }) => key === "usage");
  if (usage === undefined) return text;
  const without = editMembers(
    text.slice(usage.valueStart, usage.valueEnd),
    new Map([
      ["cost", undefined],
      ["cost_details", undefined],
    ]),
  );
  return editMembers(text, new Map([["usage", without]]));
}
