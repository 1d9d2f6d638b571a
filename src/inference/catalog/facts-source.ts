import { z } from "zod";

/** Prices in USD per million tokens, as models.dev lists them; some rows use older names. */
const priceFields = {
  input: z.number().optional(),
  output: z.number().optional(),
  cache_read: z.number().optional(),
  cached_input: z.number().optional(),
  cache_input: z.number().optional(),
  cache_write: z.number().optional(),
  cached_write: z.number().optional(),
  reasoning: z.number().optional(),
  input_audio: z.number().optional(),
  output_audio: z.number().optional(),
};

const costSchema = z.object({
  ...priceFields,
  /** Charges that no usage vector counts. */
  citation: z.number().optional(),
  request: z.number().optional(),
  tiers: z
    .array(
      z.object({
        ...priceFields,
        tier: z.object({ type: z.string().optional(), size: z.number() }),
      }),
    )
    .optional(),
});

// Only the members that are read: the source grows new ones often, and they change nothing here.
const modelSchema = z.object({
  id: z.string().min(1),
  name: z.string().min(1),
  status: z.string().optional(),
  reasoning: z.boolean().optional(),
  tool_call: z.boolean().optional(),
  structured_output: z.boolean().optional(),
  temperature: z.boolean().optional(),
  release_date: z.string().optional(),
  limit: z.object({ context: z.number().optional(), output: z.number().optional() }).optional(),
  modalities: z.object({ input: z.array(z.string()), output: z.array(z.string()) }).optional(),
  reasoning_options: z
    .array(z.object({ type: z.string(), values: z.array(z.string()).optional() }))
    .optional(),
  cost: costSchema.optional(),
  /** Set where a model is served at another address than its provider's others. */
  provider: z.object({ api: z.string().optional() }).optional(),
});

const providerFields = { id: z.string().min(1), name: z.string() };

const listShape = z.object({
  source: z.string(),
  snapshot: z.iso.date(),
  providers: z.array(z.object({ ...providerFields, models: z.array(modelSchema) })).min(1),
});

/** models.dev's own `api.json`: providers and models by id, without a date. */
const apiShape = z.record(
  z.string(),
  z.object({
    ...providerFields,
    models: z.record(z.string(), modelSchema),
  }),
);

export type SourceCost = z.infer<typeof costSchema>;
export type SourceModel = z.infer<typeof modelSchema>;

/** Facts as a source lists them, whichever shape they came in. */
export interface FactsSource {
  source: string;
  /** `YYYY-MM-DD`. */
  snapshot: string;
  providers: readonly { id: string; name: string; models: readonly SourceModel[] }[];
}

const modelsDev = "models.dev (MIT licence), repository anomalyco/models.dev";

/**
 * Reads a list of providers with a snapshot date, or models.dev's `api.json`, whose date is the day
 * of the refresh. Throws a ZodError that names what does not fit.
 */
export function parseFactsSource(value: unknown, refreshedOn: string): FactsSource {
  const isList = typeof value === "object" && value !== null && "providers" in value;
  if (isList) return listShape.parse(value);
  const providers = Object.values(apiShape.parse(value));
  if (providers.length === 0) throw new Error("The facts source lists no providers.");
  return {
    source: modelsDev,
    snapshot: refreshedOn,
    providers: providers.map(({ id, name, models }) => ({
      id,
      name,
      models: Object.values(models),
    })),
  };
}
