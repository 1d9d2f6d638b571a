import { z } from "zod";
import {
  parseDecimal,
  picoPerTokenFromUsdPerMillion,
  usdPerMillionText,
} from "../../../platform/kernel/money.ts";
import { levelFields, type LevelField } from "../../../platform/kernel/models/charged-extras.ts";
import type { FactPrices } from "../catalog-facts.ts";
import { present } from "../model.ts";

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

// Only the members that are read: the source often adds new ones, which change nothing here.
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
  /** Modes with prices of their own, and the request fields that ask for them. */
  experimental: z
    .object({
      modes: z
        .record(
          z.string(),
          z.object({
            cost: z.object(priceFields).optional(),
            provider: z.object({ body: z.record(z.string(), z.unknown()).optional() }).optional(),
          }),
        )
        .optional(),
    })
    .optional(),
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

/** The prices of a model, as a source of facts lists them. */
export type SourceCost = z.infer<typeof costSchema>;
/** A model of a provider, as a source of facts lists it. */
export type SourceModel = z.infer<typeof modelSchema>;

/** Facts as a source lists them, in either of its forms. */
export interface FactsSource {
  source: string;
  /** `YYYY-MM-DD`. */
  snapshot: string;
  providers: readonly { id: string; name: string; models: readonly SourceModel[] }[];
}

const modelsDev = "models.dev (MIT licence), repository anomalyco/models.dev";

/**
 * Parses a list of providers with a snapshot date, or models.dev's `api.json`, whose date is the
 * day of the refresh. Throws a ZodError that names the mismatch.
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

/** The facts on which the prices of a row depend, beside the row. */
export interface PriceContext {
  provider: string;
  catalogId: string;
}

/** The base price of a row and its tiers, in the project's own format. */
export interface RowPrices {
  prices: FactPrices;
  tiers?: { above: number; prices: FactPrices }[];
}

/** Resellers without free models: a zero in their rows means a missing price. */
const sellersWithoutFreeModels: ReadonlySet<string> = new Set(["vercel", "huggingface"]);

/**
 * Models with charges beyond their tokens that no usage vector counts (citations, searches).
 * Without a price they serve only callers with their own key.
 */
const chargedByMoreThanTokens: ReadonlySet<string> = new Set([
  "perplexity/sonar-deep-research",
  "perplexity/sonar-pro-search",
  "openai/gpt-4o-search-preview",
  "openai/gpt-4o-mini-search-preview",
]);

/**
 * USD per request that Perplexity charges in addition to the tokens at the default search context,
 * which the facts source omits. Source: docs.perplexity.ai/getting-started/pricing, read 2026-07.
 */
const requestFeesUsd: Readonly<Record<string, string>> = {
  "perplexity/sonar": "0.005",
  "perplexity/sonar-pro": "0.006",
  "perplexity/sonar-reasoning-pro": "0.006",
};

/**
 * Names that moved on to a more expensive model while the source kept the earlier one's price, as
 * other rows of the same snapshot show. No price is better than a third of the real one.
 */
const movedOn: ReadonlySet<string> = new Set([
  "google/gemini-flash-latest",
  "google/gemini-flash-lite-latest",
  "mistralai/mistral-medium-latest",
]);

/** Returns the prices of a row; undefined when they are unknown, incomplete or implausible. */
export function sourcePrices(
  cost: SourceCost | undefined,
  context: PriceContext,
): RowPrices | undefined {
  const { catalogId } = context;
  if (cost === undefined || chargedByMoreThanTokens.has(catalogId) || movedOn.has(catalogId))
    return undefined;
  const prices = priceSet(cost, context);
  if (prices === undefined) return undefined;
  const isFree = prices.input === "0" && prices.output === "0";
  if (isFree && sellersWithoutFreeModels.has(context.provider)) return undefined;
  const tiers = (cost.tiers ?? [])
    .filter(({ tier }) => tier.type === undefined || tier.type === "context")
    .flatMap(({ tier, ...tierCost }) => {
      const tierPrices = priceSet(tierCost, context);
      return tierPrices === undefined ? [] : [{ above: tier.size, prices: tierPrices }];
    })
    .sort((left, right) => right.above - left.above);
  return tiers.length === 0 ? { prices } : { prices, tiers };
}

/** Returns the prices at the levels that a row names, by request field and value. */
export function sourceLevels(
  { experimental }: Pick<SourceModel, "experimental">,
  context: PriceContext,
): Partial<Record<LevelField, Record<string, FactPrices>>> {
  const levels: Partial<Record<LevelField, Record<string, FactPrices>>> = {};
  for (const { cost, provider } of Object.values(experimental?.modes ?? {})) {
    const prices = cost && priceSet(cost, context);
    for (const field of levelFields) {
      const value = provider?.body?.[field];
      if (prices === undefined || typeof value !== "string") continue;
      levels[field] = { ...levels[field], [value]: prices };
    }
  }
  return levels;
}

/** Returns the decimal text of USD per million tokens, rounded to the pico-dollar per token. */
function text(usd: number | undefined): string | undefined {
  const pico = usd === undefined ? undefined : picoPerTokenFromUsdPerMillion(usd);
  return pico === undefined || pico < 0n ? undefined : usdPerMillionText(pico);
}

function priceSet(
  cost: Omit<SourceCost, "tiers">,
  { catalogId }: PriceContext,
): FactPrices | undefined {
  const input = text(cost.input);
  const output = text(cost.output);
  if (input === undefined || output === undefined) return undefined;
  const request = requestFeesUsd[catalogId];
  return present({
    input,
    output,
    cache_read: text(cacheRead(cost)),
    cache_write: text(cacheWrite(cost, catalogId)),
    cache_write_1h: text(cacheWriteOneHour(cost, catalogId)),
    reasoning: text(cost.reasoning),
    input_audio: text(cost.input_audio),
    output_audio: text(cost.output_audio),
    request: request === undefined ? undefined : usdPerMillionRequests(request),
  });
}

/**
 * Returns the price of cached input. The source writes 0 where a vendor has none, and in a few rows
 * a read is more expensive than fresh input: both count as not stated, so the input price applies.
 */
function cacheRead(cost: Omit<SourceCost, "tiers">): number | undefined {
  const read = cost.cache_read ?? cost.cached_input ?? cost.cache_input;
  const input = cost.input ?? 0;
  return read === undefined || read > input || (read === 0 && input > 0) ? undefined : read;
}

/**
 * Returns the price of cache writes. Google's figure is a rent per hour of storage and not a price
 * per token; 0 is treated as for reads.
 */
function cacheWrite(cost: Omit<SourceCost, "tiers">, catalogId: string): number | undefined {
  const write = cost.cache_write ?? cost.cached_write;
  if (catalogId.startsWith("google/")) return undefined;
  return write === 0 && (cost.input ?? 0) > 0 ? undefined : write;
}

/**
 * Returns the price of one-hour cache writes. At Anthropic, writes that live for five minutes cost
 * 1.25 times the input, those for an hour twice. Source:
 * docs.anthropic.com/en/docs/build-with-claude/prompt-caching. The facts have only the former.
 */
function cacheWriteOneHour(cost: Omit<SourceCost, "tiers">, catalogId: string): number | undefined {
  const { input, cache_write: write } = cost;
  if (!catalogId.startsWith("anthropic/") || input === undefined || write === undefined)
    return undefined;
  return Math.abs(write - input * 1.25) < 1e-6 ? input * 2 : undefined;
}

/** Converts USD per request to USD per million requests, the unit of request prices in the file. */
function usdPerMillionRequests(usd: string): string | undefined {
  const pico = parseDecimal(usd, 12);
  return pico === undefined ? undefined : usdPerMillionText(pico);
}
