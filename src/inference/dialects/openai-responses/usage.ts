import type { GatewayFacts, MeteredUsage } from "../../canonical/response.ts";
import type { JsonObject } from "../../canonical/json.ts";
import {
  totalCacheWrites,
  totalInputTokens,
  totalOutputTokens,
} from "../../../platform/kernel/usage.ts";
import { fieldsOf, readOpenaiUsage, withTier } from "../shared/openai-fields.ts";
import { withoutUndefined } from "../shared/wire-fields.ts";

/**
 * Reads the usage of a response object, complete or in progress, with its service tier and the
 * calls of OpenAI's tools that are charged one by one: searches of the web and of files, and the
 * containers that code ran in. Searches that are charged are reported apart from their items, of
 * which one may make several and some are free (openai 7.55, `Response.ToolUsage`); where they are
 * not, opening a page that a search found is free. Source: OpenAI's price page (2026-07).
 */
export function readResponseUsage(response: {
  usage?: unknown;
  service_tier?: unknown;
  output?: unknown;
  tool_usage?: unknown;
}): MeteredUsage | undefined {
  const metered = withTier(readOpenaiUsage(response.usage), response.service_tier);
  if (metered === undefined) return metered;
  const { searches: shown, toolCalls } = callsIn(
    Array.isArray(response.output) ? response.output : [],
  );
  const { num_requests: charged } = fieldsOf(fieldsOf(response.tool_usage).web_search);
  const searches = isCount(charged) ? charged : shown;
  if (searches === 0 && toolCalls === 0) return metered;
  return {
    ...metered,
    usage: {
      ...metered.usage,
      ...(searches > 0 && { searches }),
      ...(toolCalls > 0 && { toolCalls }),
    },
  };
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0;

function callsIn(output: readonly unknown[]): { searches: number; toolCalls: number } {
  const containers = new Set<unknown>();
  let [searches, calls] = [0, 0];
  for (const value of output) {
    const item = fieldsOf(value);
    if (item.type === "web_search_call" && isSearch(item.action)) searches += 1;
    else if (item.type === "code_interpreter_call") containers.add(item.container_id);
    else if (typeof item.type === "string" && chargedCalls.has(item.type)) calls += 1;
  }
  return { searches, toolCalls: calls + containers.size };
}

const chargedCalls: ReadonlySet<string> = new Set(["file_search_call", "image_generation_call"]);

const isSearch = (action: unknown): boolean => (fieldsOf(action).type ?? "search") === "search";

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
