import { z } from "zod";
import { picoPerTokenFromUsdPerMillion } from "../../platform/lib/money.ts";

/** USD per million tokens as decimal text, exact to the millionth of a dollar. */
const usdPerMillion = z
  .string()
  .refine(
    (text) => (picoPerTokenFromUsdPerMillion(text) ?? -1n) >= 0n,
    "must be a decimal number that is not negative",
  );

const factPricesSchema = z.lazy(() =>
  z.strictObject({
    input: usdPerMillion,
    output: usdPerMillion,
    cache_read: usdPerMillion.optional(),
    cache_write: usdPerMillion.optional(),
    cache_write_1h: usdPerMillion.optional(),
    reasoning: usdPerMillion.optional(),
    input_audio: usdPerMillion.optional(),
    output_audio: usdPerMillion.optional(),
    /** USD per million requests, beside the tokens. */
    request: usdPerMillion.optional(),
  }),
);

const factRowSchema = z.lazy(() =>
  z.strictObject({
    id: z.string().regex(/^[^/\s]+\/\S+$/),
    provider: z.string(),
    upstream: z.string(),
    name: z.string(),
    surface: z.enum(["chat", "embeddings", "rerank", "moderations", "decisions", "documents"]),
    /** Tokens; absent where the source names none. */
    context: z.int().positive().optional(),
    max_output: z.int().positive().optional(),
    quantization: z.string().optional(),
    prices: factPricesSchema.optional(),
    /** Whole-request prices above a total input, the largest first. */
    tiers: z
      .array(z.strictObject({ above: z.int().positive(), prices: factPricesSchema }))
      .optional(),
    capabilities: z.array(z.string()),
    parameters: z.array(z.string()).optional(),
    /** Effort levels in ascending order. */
    efforts: z.array(z.string()).min(1).optional(),
    released: z.string().optional(),
  }),
);

/** The project's own form of what is known of models: one row for a provider's way to serve a model. */
export const catalogFactsSchema = z.lazy(() =>
  z.strictObject({
    source: z.string(),
    licence: z.string(),
    /** Date of the source, `YYYY-MM-DD`; the version of every price in it. */
    snapshot: z.iso.date(),
    units: z.string(),
    /** Other spellings of catalog ids that vendors use. */
    aliases: z.record(z.string(), z.string()),
    /** Sorted by id, then provider. */
    rows: z.array(factRowSchema),
  }),
);

export type CatalogFacts = z.infer<typeof catalogFactsSchema>;
export type FactRow = z.infer<typeof factRowSchema>;
export type FactPrices = z.infer<typeof factPricesSchema>;

/**
 * The text of a facts file: one row a line, so that a refresh shows as a readable change, and equal
 * facts always give equal text.
 */
export function factsText(facts: CatalogFacts): string {
  const { rows, aliases, ...header } = facts;
  const sortedAliases = Object.entries(aliases).sort(([left], [right]) => compareText(left, right));
  const aliasLines = sortedAliases.map(
    ([alias, id]) => `${JSON.stringify(alias)}:${JSON.stringify(id)}`,
  );
  const head = JSON.stringify(header).slice(0, -1);
  return `${head},\n"aliases":{\n${aliasLines.join(",\n")}\n},\n"rows":[\n${rows
    .map((row) => JSON.stringify(row))
    .join(",\n")}\n]}\n`;
}

/** Order of code units: the same on every machine, unlike a locale's. */
export const compareText = (left: string, right: string): number =>
  left < right ? -1 : left > right ? 1 : 0;
