import type { Usage } from "../../../platform/kernel/usage.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import { CountReader, asArray, asObject } from "../shared/wire-fields.ts";

/**
 * Reads `usage` as disjoint counts. Cached tokens are reported beside the input, and reasoning as
 * part of the output. Undefined when the value has no usage. Source: `TokenUsage` of
 * docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html (2026-11).
 */
export function readUsage(value: unknown, serviceTier?: unknown): MeteredUsage | undefined {
  const fields = asObject(value);
  if (fields === undefined) return undefined;
  const counts = new CountReader();
  const inputTokens = counts.read(fields.inputTokens);
  const outputTokens = counts.read(fields.outputTokens);
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  const usage: Usage = {};
  if (inputTokens !== undefined) usage.inputTokens = inputTokens;
  const cacheRead = counts.read(fields.cacheReadInputTokens);
  if (cacheRead !== undefined) usage.cacheReadTokens = cacheRead;
  readCacheWrites(usage, {
    written: counts.read(fields.cacheWriteInputTokens),
    forOneHour: writtenForOneHour(fields.cacheDetails, counts),
    counts,
  });
  if (outputTokens !== undefined) usage.outputTokens = outputTokens;
  const tier = asObject(serviceTier)?.type;
  return {
    usage,
    estimated: false,
    clamped: counts.clamped,
    ...(typeof tier === "string" && { levels: { service_tier: tier } }),
  };
}

function readCacheWrites(
  usage: Usage,
  {
    written,
    forOneHour,
    counts,
  }: { written: number | undefined; forOneHour: number | undefined; counts: CountReader },
): void {
  if (forOneHour === undefined) {
    if (written !== undefined) usage.cacheWriteTokens = written;
    return;
  }
  const hour = written === undefined ? forOneHour : counts.within(forOneHour, written);
  usage.cacheWriteTokens = (written ?? forOneHour) - hour;
  usage.cacheWriteOneHourTokens = hour;
}

/** Returns the tokens that were written for an hour; undefined where the details name none. */
function writtenForOneHour(details: unknown, counts: CountReader): number | undefined {
  const entry = (asArray(details) ?? []).map(asObject).find((one) => one?.ttl === "1h");
  return counts.read(entry?.inputTokens);
}
