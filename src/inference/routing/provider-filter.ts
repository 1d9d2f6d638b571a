import { GatewayError } from "../../platform/lib/errors.ts";
import { picoPerTokenFromUsdPerMillion } from "../../platform/lib/money.ts";
import type { ProviderFilter } from "./candidate.ts";
import { checkPreferences } from "./check-preferences.ts";
import {
  sortOf,
  type ProviderPreferences,
  type SortKey,
  type WrittenCutoffs,
} from "./provider-preferences.ts";
import type { Cutoff } from "./route-measures.ts";

const openFilter: ProviderFilter = Object.freeze({ allowFallbacks: true, partition: "model" });

const noPreferences: ProviderPreferences = Object.freeze({});

const percentiles = [
  ["p50", 0.5],
  ["p75", 0.75],
  ["p90", 0.9],
  ["p99", 0.99],
] as const;

function priceBound(value: string | number | null | undefined, param: string): bigint | undefined {
  if (value === null || value === undefined) return undefined;
  const bound = picoPerTokenFromUsdPerMillion(value);
  if (bound === undefined || bound < 0n) {
    throw new GatewayError(
      "bad_request",
      `${param} must be a price in USD per million tokens, such as "1.50".`,
      { param },
    );
  }
  return bound;
}

/** Cutoffs of a `preferred_*` field, each bound times `unit`; a number is that of the median. */
function cutoffsOf(written: WrittenCutoffs | null | undefined, unit: number): Cutoff[] | undefined {
  if (written === null || written === undefined) return undefined;
  if (typeof written === "number") return [{ share: 0.5, bound: written * unit }];
  return percentiles.flatMap(([name, share]) => {
    const bound = written[name];
    return bound === undefined ? [] : [{ share, bound: bound * unit }];
  });
}

/** What a request says of providers, in all the places where it can. */
export interface WrittenPreferences {
  /** The `provider` object of the request, that of its preset merged in. */
  provider: unknown;
  /** What the model id's suffix stands for. */
  suffixSort: SortKey | undefined;
  suffixMinContext?: number | undefined;
  /** Backends named by header; they win over everything else. */
  forcedProviders: readonly string[] | undefined;
}

/**
 * What routing filters and sorts by: the request's `provider` object, the model id's suffix, and backends forced
 * by header.
 */
export function providerFilter(written: WrittenPreferences): ProviderFilter {
  const { provider, suffixSort, suffixMinContext, forcedProviders } = written;
  const plain = provider === undefined || provider === null;
  if (
    plain &&
    suffixSort === undefined &&
    suffixMinContext === undefined &&
    forcedProviders === undefined
  )
    return openFilter;
  const preferences = plain ? noPreferences : checkPreferences(provider);
  const sort = sortOf(preferences) ?? suffixSort;
  const partition =
    typeof preferences.sort === "object" ? (preferences.sort?.partition ?? "model") : "model";
  return {
    allowFallbacks: preferences.allow_fallbacks ?? true,
    partition,
    order: forcedProviders ?? preferences.order ?? undefined,
    only: forcedProviders ?? preferences.only ?? undefined,
    ignore: preferences.ignore ?? undefined,
    sort,
    maxPromptPicoUsd: priceBound(preferences.max_price?.prompt, "provider.max_price.prompt"),
    maxCompletionPicoUsd: priceBound(
      preferences.max_price?.completion,
      "provider.max_price.completion",
    ),
    quantizations: preferences.quantizations?.map((name) => name.toLowerCase()),
    zdr: preferences.zdr ?? undefined,
    denyDataCollection: preferences.data_collection === "deny",
    distillableText: preferences.enforce_distillable_text ?? undefined,
    requireParameters: preferences.require_parameters ?? undefined,
    requireParams: preferences.require_params ?? undefined,
    minContext: Math.max(preferences.min_context ?? 0, suffixMinContext ?? 0) || undefined,
    minThroughput: cutoffsOf(preferences.preferred_min_throughput, 1),
    // Callers write seconds.
    maxLatencyMs: cutoffsOf(preferences.preferred_max_latency, 1_000),
  };
}
