import { z } from "zod";

const slugs = z.array(z.string().min(1));
const decimalText = z.union([z.string(), z.number()]);
const cutoffs = z.union([
  z.number().nonnegative(),
  z.strictObject({ p50: z.number().optional(), p75: z.number().optional(), p90: z.number().optional(), p99: z.number().optional() }),
]);
const sortNames = z.enum(["price", "throughput", "latency", "exacto", "cost", "ttft", "tps"]);

/** The `provider` object of a request (contract: "The provider object"); unknown fields are ignored. */
export const providerPreferencesSchema = z.object({
  order: slugs.nullish(),
  allow_fallbacks: z.boolean().nullish(),
  require_parameters: z.boolean().nullish(),
  require_params: slugs.nullish(),
  min_context: z.number().nonnegative().nullish(),
  data_collection: z.enum(["allow", "deny"]).nullish(),
  zdr: z.boolean().nullish(),
  enforce_distillable_text: z.boolean().nullish(),
  only: slugs.nullish(),
  ignore: slugs.nullish(),
  quantizations: slugs.nullish(),
  sort: z.union([
    sortNames,
    z.object({ by: z.enum(["price", "throughput", "latency"]), partition: z.enum(["model", "none"]).nullish() }),
  ]).nullish(),
  preferred_min_throughput: cutoffs.nullish(),
  preferred_max_latency: cutoffs.nullish(),
  max_price: z.object({ prompt: decimalText.nullish(), completion: decimalText.nullish() }).nullish(),
});

export type ProviderPreferences = z.infer<typeof providerPreferencesSchema>;

/** What routes are sorted by once load balancing is off. */
export type SortKey = "price" | "throughput" | "latency" | "exacto";

const aliases: Record<string, SortKey> = { cost: "price", ttft: "latency", tps: "throughput" };

/** The sort of a request with its aliases resolved; undefined leaves load balancing on. */
export function sortOf(preferences: ProviderPreferences | undefined): SortKey | undefined {
  const { sort } = preferences ?? {};
  if (sort === null || sort === undefined) return undefined;
  const name = typeof sort === "string" ? sort : sort.by;
  return aliases[name] ?? (name as SortKey);
}
