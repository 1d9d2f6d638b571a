import type { ConfiguredModel } from "../../../inference/catalog/configured/configured-provider.ts";
import type { SourceNode } from "../source-node.ts";

type Pricing = NonNullable<ConfiguredModel["pricing"]>;

/** What a pointer into a provider's answer counts. */
const counted: readonly (readonly [
  RegExp,
  "prompt" | "completion" | "cache_read" | "cache_write",
])[] = [
  [/^\/usage\/(?:prompt_tokens|input_tokens|total_tokens)$/, "prompt"],
  [/^\/usage(?:Metadata)?\/promptTokenCount$/, "prompt"],
  [/^\/usage\/(?:completion_tokens|output_tokens)$/, "completion"],
  [/^\/usage(?:Metadata)?\/candidatesTokenCount$/, "completion"],
  [/cached_tokens$|cache_read_input_tokens$|cachedContentTokenCount$/, "cache_read"],
  [/cache_creation_input_tokens$/, "cache_write"],
];

/** Converts USD to the text of the configuration. */
const usd = (value: number): string => value.toFixed(9).replace(/\.?0+$/, "");

/**
 * Returns the prices of `cost`, in USD per million tokens; undefined where it does not price the
 * prompt. A negative rate is a discount on what the prompt counted already.
 */
export function pricingOf(cost: SourceNode | undefined): Pricing | undefined {
  const rates = new Map<string, number>();
  for (const entry of cost?.items() ?? []) {
    const pointer = (entry.get("pointer") ?? entry.get("pointer_nonstreaming"))?.text() ?? "";
    const rate = entry.get("cost_per_million")?.number();
    const part = counted.find(([pattern]) => pattern.test(pointer))?.[1];
    if (rate === undefined || part === undefined) {
      entry.report("left_out", "prices what the gateway does not price by this name");
      continue;
    }
    entry.get("required")?.whole();
    entry.get("pointer_streaming")?.whole();
    rates.set(part, rate);
  }
  const prompt = rates.get("prompt");
  if (prompt === undefined) return undefined;
  const read = rates.get("cache_read");
  const cacheRead = read !== undefined && read < 0 ? prompt + read : read;
  const write = rates.get("cache_write");
  return {
    prompt: usd(prompt),
    completion: usd(rates.get("completion") ?? 0),
    ...(cacheRead === undefined ? {} : { cache_read: usd(Math.max(0, cacheRead)) }),
    ...(write === undefined ? {} : { cache_write: usd(write) }),
  };
}
