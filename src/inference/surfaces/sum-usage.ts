import type { MeteredUsage, Usage } from "../canonical/usage.ts";

/** The usage of several answers; undefined when any of them reported none. */
export function sumUsage(parts: readonly (MeteredUsage | undefined)[]): MeteredUsage | undefined {
  const usage: Usage = {};
  const sum: MeteredUsage = { usage, estimated: false, clamped: false };
  for (const part of parts) {
    if (part === undefined) return undefined;
    for (const [name, count] of Object.entries(part.usage) as [keyof Usage, number | undefined][]) {
      if (count !== undefined) usage[name] = (usage[name] ?? 0) + count;
    }
    sum.estimated ||= part.estimated;
    sum.clamped ||= part.clamped;
    if (part.providerCostUsd !== undefined)
      sum.providerCostUsd = (sum.providerCostUsd ?? 0) + part.providerCostUsd;
  }
  return sum;
}
