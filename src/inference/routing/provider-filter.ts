import { checkPreferences } from "./check-preferences.ts";
import { picoPerTokenFromUsdPerMillion } from "../../platform/lib/money.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { ProviderFilter } from "./candidate.ts";
import { sortOf, type SortKey } from "./provider-preferences.ts";

const openFilter: ProviderFilter = Object.freeze({ allowFallbacks: true, partition: "model" });

function priceBound(value: string | number | null | undefined, param: string): bigint | undefined {
  if (value === null || value === undefined) return undefined;
  const bound = picoPerTokenFromUsdPerMillion(value);
  if (bound === undefined || bound < 0n) {
    throw new GatewayError("bad_request", `${param} must be a price in USD per million tokens, such as "1.50".`, { param });
  }
  return bound;
}

/** Entries whose value is set. */
function present<T extends object>(value: T): Partial<{ [K in keyof T]: NonNullable<T[K]> }> {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== null && entry !== undefined)) as never;
}

/**
 * What routing filters and sorts by: the request's `provider` object, its suffix shortcut, and backends
 * forced by header, which win over both.
 */
export function providerFilter(options: {
  provider: unknown;
  suffixSort: SortKey | undefined;
  forcedProviders: readonly string[] | undefined;
}): ProviderFilter {
  const { suffixSort, forcedProviders } = options;
  const plain = options.provider === undefined || options.provider === null;
  if (plain && suffixSort === undefined && forcedProviders === undefined) return openFilter;
  const preferences = checkPreferences(options.provider ?? {});
  const sort = sortOf(preferences) ?? suffixSort;
  const partition = typeof preferences.sort === "object" ? preferences.sort?.partition ?? "model" : "model";
  return {
    allowFallbacks: preferences.allow_fallbacks ?? true,
    partition,
    ...present({
      order: forcedProviders ?? preferences.order,
      only: forcedProviders ?? preferences.only,
      ignore: preferences.ignore,
      sort,
      maxPromptPicoUsd: priceBound(preferences.max_price?.prompt, "provider.max_price.prompt"),
      maxCompletionPicoUsd: priceBound(preferences.max_price?.completion, "provider.max_price.completion"),
      quantizations: preferences.quantizations,
      zdr: preferences.zdr,
      denyDataCollection: preferences.data_collection === "deny" ? true : undefined,
      distillableText: preferences.enforce_distillable_text,
      requireParameters: preferences.require_parameters,
      requireParams: preferences.require_params,
      minContext: preferences.min_context,
    }),
  } as ProviderFilter;
}
