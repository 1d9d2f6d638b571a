import { z } from "zod";

const slugs = z.array(z.string().min(1));
const decimalText = z.union([z.string(), z.number()]);
const amount = z.number().nonnegative();
const cutoffs = z.union([
  amount,
  z.strictObject({ p50: amount, p75: amount, p90: amount, p99: amount }).partial(),
]);
const measures = ["price", "throughput", "latency", "cost", "ttft", "tps"] as const;

/** The `provider` object of a request (contract: "The provider object"); unknown fields are ignored. */
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
    .object({ prompt: decimalText.nullish(), completion: decimalText.nullish() })
    .nullish(),
});

export type ProviderPreferences = z.infer<typeof providerPreferencesSchema>;

/** Bounds by percentile as a request writes them: a number is that of the median. */
export type WrittenCutoffs = NonNullable<ProviderPreferences["preferred_max_latency"]>;

/** What routes are sorted by once load balancing is off; `availability` has no name in `provider.sort`. */
export type SortKey = "price" | "throughput" | "latency" | "exacto" | "availability";

const aliases: Record<string, SortKey> = { cost: "price", ttft: "latency", tps: "throughput" };

/** The sort of a request with its aliases resolved; undefined leaves load balancing on. */
export function sortOf(preferences: ProviderPreferences | undefined): SortKey | undefined {
  const { sort } = preferences ?? {};
  if (sort === null || sort === undefined) return undefined;
  const name = typeof sort === "string" ? sort : sort.by;
  return aliases[name] ?? (name as SortKey);
}
