import { z } from "zod";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { problemIn, problemText } from "../../platform/kernel/schema-problems.ts";
import { picoPerTokenFromUsdPerMillion } from "../../platform/kernel/money.ts";
import type { Cutoff } from "./health/health-windows.ts";

const slugs = z.array(z.string().min(1));
const decimalText = z.union([z.string(), z.number()]);
const amount = z.number().nonnegative();
const cutoff = amount.nullish();
const cutoffs = z.union([
  amount,
  z.strictObject({ p50: cutoff, p75: cutoff, p90: cutoff, p99: cutoff }),
]);
const measures = ["price", "throughput", "latency", "cost", "ttft", "tps"] as const;

/**
 * The `provider` object of a request (contract: "The provider object"). Unknown fields are ignored.
 */
export const providerPreferencesSchema = z.object({
  order: slugs.nullish(),
  allow_fallbacks: z.boolean().nullish(),
  require_parameters: z.boolean().nullish(),
  require_params: slugs.nullish(),
  min_context: amount.nullish(),
  data_collection: z.enum(["allow", "deny"]).nullish(),
  zdr: z.boolean().nullish(),
  enforce_distillable_text: z.boolean().nullish(),
  only: slugs.nullish(),
  ignore: slugs.nullish(),
  quantizations: slugs.nullish(),
  sort: z
    .union([
      z.enum([...measures, "exacto"]),
      z.object({ by: z.enum(measures), partition: z.enum(["model", "none"]).nullish() }),
    ])
    .nullish(),
  preferred_min_throughput: cutoffs.nullish(),
  preferred_max_latency: cutoffs.nullish(),
  max_price: z
    .object({
      prompt: decimalText.nullish(),
      completion: decimalText.nullish(),
      image: decimalText.nullish(),
      request: decimalText.nullish(),
    })
    .nullish(),
});

type ProviderPreferences = z.infer<typeof providerPreferencesSchema>;

/** Bounds by percentile, as a request writes them. A plain number bounds the median. */
type WrittenCutoffs = NonNullable<ProviderPreferences["preferred_max_latency"]>;

/**
 * The criterion by which routes are sorted once load balancing is off. `availability` has no name
 * in `provider.sort`.
 */
export type SortKey = "price" | "throughput" | "latency" | "exacto" | "availability";

const aliases: Record<string, SortKey> = { cost: "price", ttft: "latency", tps: "throughput" };

/** Returns the sort of a request with its aliases resolved; undefined leaves load balancing on. */
function sortOf(preferences: ProviderPreferences | undefined): SortKey | undefined {
  const { sort } = preferences ?? {};
  if (sort === null || sort === undefined) return undefined;
  const name = typeof sort === "string" ? sort : sort.by;
  return aliases[name] ?? (name as SortKey);
}

const openFilter: ProviderFilter = Object.freeze({ allowFallbacks: true, partition: "model" });

const noPreferences: ProviderPreferences = Object.freeze({});

const percentiles = [
  ["p50", 0.5],
  ["p75", 0.75],
  ["p90", 0.9],
  ["p99", 0.99],
] as const;

type WrittenPrice = string | number | null | undefined;

function priceBound(
  value: WrittenPrice,
  param: string,
  unit = "USD per million tokens",
): bigint | undefined {
  if (value === null || value === undefined) return undefined;
  const bound = picoPerTokenFromUsdPerMillion(value);
  if (bound === undefined || bound < 0n) {
    const message = `${param} must be a price in ${unit}, such as "1.50".`;
    throw new GatewayError("bad_request", message, { param });
  }
  return bound;
}

/** Returns the bound of a price in USD in pico-USD. */
function usdBound(value: WrittenPrice, param: string): bigint | undefined {
  const millionth = priceBound(value, param, "USD");
  return millionth === undefined ? undefined : millionth * 1_000_000n;
}

/**
 * Returns the cutoffs of a `preferred_*` field, each bound multiplied by `unit`. A plain number
 * bounds the median.
 */
function cutoffsOf(written: WrittenCutoffs | null | undefined, unit: number): Cutoff[] | undefined {
  if (written === null || written === undefined) return undefined;
  if (typeof written === "number") return [{ share: 0.5, bound: written * unit }];
  return percentiles.flatMap(([name, share]) => {
    const bound = written[name];
    return bound === undefined || bound === null ? [] : [{ share, bound: bound * unit }];
  });
}

/** A request's preferences among providers, from all the places where it can state them. */
export interface WrittenPreferences {
  /** The `provider` object of the request, with that of its preset merged in. */
  provider: unknown;
  /** The preference that the model id's suffix means. */
  suffixSort: SortKey | undefined;
  suffixMinContext?: number | undefined;
  /** Providers named by header; they take precedence over everything else. */
  forcedProviders: readonly string[] | undefined;
}

/**
 * Returns what routing filters and sorts by: the request's `provider` object, the model id's
 * suffix, and the providers forced by header.
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
  const order = forcedProviders ?? preferences.order ?? undefined;
  const allowFallbacks = preferences.allow_fallbacks ?? true;
  return {
    allowFallbacks,
    partition,
    order,
    // A provider beside an order is one of the backups that `allow_fallbacks: false` rules out.
    onlyOrdered: !allowFallbacks && order !== undefined && order.length > 0,
    only: forcedProviders ?? preferences.only ?? undefined,
    ignore: preferences.ignore ?? undefined,
    sort,
    maxPromptPicoUsd: priceBound(preferences.max_price?.prompt, "provider.max_price.prompt"),
    maxCompletionPicoUsd: priceBound(
      preferences.max_price?.completion,
      "provider.max_price.completion",
    ),
    maxImagePicoUsd: usdBound(preferences.max_price?.image, "provider.max_price.image"),
    maxRequestPicoUsd: usdBound(preferences.max_price?.request, "provider.max_price.request"),
    quantizations: preferences.quantizations?.map((name) => name.toLowerCase()),
    zdr: preferences.zdr ?? undefined,
    denyDataCollection: preferences.data_collection === "deny",
    distillableText: preferences.enforce_distillable_text ?? undefined,
    requireParameters: preferences.require_parameters ?? undefined,
    requireParams: preferences.require_params ?? undefined,
    minContext: Math.max(preferences.min_context ?? 0, suffixMinContext ?? 0) || undefined,
    minThroughput: cutoffsOf(preferences.preferred_min_throughput, 1),
    // Callers give seconds.
    maxLatencyMs: cutoffsOf(preferences.preferred_max_latency, 1_000),
  };
}

/** Checks a request's `provider` object. Throws `bad_request` that names the field. */
function checkPreferences(value: unknown): ProviderPreferences {
  const result = providerPreferencesSchema.safeParse(value, { error: problemText });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const { path, message } =
    issue === undefined ? { path: [], message: "not valid" } : problemIn(issue);
  const param = `provider${path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("")}`;
  throw badField(param, message);
}

/** A request's preferences among providers, with those of its suffix and headers merged in. */
export interface ProviderFilter {
  order?: readonly string[] | undefined;
  /** Whether the providers that `order` does not name are backups that the caller rules out. */
  onlyOrdered?: boolean | undefined;
  only?: readonly string[] | undefined;
  ignore?: readonly string[] | undefined;
  /** Providers that the caller's workspace or key excludes from all its requests. */
  blocked?: readonly string[] | undefined;
  allowFallbacks: boolean;
  sort?: SortKey | undefined;
  /** `none` sorts the routes of all models together. */
  partition: "model" | "none";
  maxPromptPicoUsd?: bigint | undefined;
  maxCompletionPicoUsd?: bigint | undefined;
  /** Of one picture at the size and quality that were asked for, and of a request by itself. */
  maxImagePicoUsd?: bigint | undefined;
  maxRequestPicoUsd?: bigint | undefined;
  quantizations?: readonly string[] | undefined;
  zdr?: boolean | undefined;
  denyDataCollection?: boolean | undefined;
  distillableText?: boolean | undefined;
  requireParameters?: boolean | undefined;
  requireParams?: readonly string[] | undefined;
  minContext?: number | undefined;
  /** Tokens per second. A route below any of these bounds moves to the end. */
  minThroughput?: readonly Cutoff[] | undefined;
  /** Milliseconds to the first token. A route above any of these bounds moves to the end. */
  maxLatencyMs?: readonly Cutoff[] | undefined;
}
