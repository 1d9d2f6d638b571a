import type { MeteredUsage } from "../canonical/usage.ts";
import { CountReader } from "../dialects/count-reader.ts";

/** Usage of a provider that reports one count, that of the input; undefined when it reported none. */
export function inputTokensOf(count: unknown): MeteredUsage | undefined {
  const counts = new CountReader();
  const inputTokens = counts.read(count);
  return inputTokens === undefined
    ? undefined
    : { usage: { inputTokens }, estimated: false, clamped: counts.clamped };
}
