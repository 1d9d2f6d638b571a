import { createHash } from "node:crypto";
import { levelFields, searchTool } from "../../platform/kernel/models/charged-extras.ts";
import {
  dearestPicture,
  type PicturePrices,
  type PriceLevel,
  type PriceLevels,
  type PriceRow,
  type PriceVector,
} from "../../billing/ledger/price.ts";
import {
  parseDecimal,
  picoPerTokenFromUsdPerMillion,
  type PicoUsd,
} from "../../platform/kernel/money.ts";
import type { FactMedia, FactPrices, FactRow } from "./catalog-facts.ts";
import type { ConfiguredPricing } from "./configured/configured-provider.ts";
import { definitionOf, deviatingDialect, rulesFor } from "./model-rules.ts";
import {
  present,
  type CatalogModel,
  type Provider,
  type ReasoningLevels,
  type Surface,
  type UpstreamRoute,
} from "./model.ts";

/** The context in which rows of the facts are read. */
export interface FactContext {
  priceOf: FactPriceReader;
  providers: ReadonlyMap<string, Provider>;
  /** Providers whose dialect the operator chose, so that the vendor's deviations do not apply. */
  redirected: ReadonlySet<string>;
}

/**
 * Returns the model that rows of one id describe; undefined when none of their providers is in the
 * catalog.
 */
export function factModel(
  rows: readonly FactRow[],
  context: FactContext,
): CatalogModel | undefined {
  const main = mainRow(rows);
  if (main === undefined) return undefined;
  const routes = rows.flatMap((row) => factRoute(row, main, context) ?? []);
  if (routes.length === 0) return undefined;
  return present({
    id: main.id,
    displayName: main.name,
    owner: ownerOf(main.id),
    surface: main.surface,
    category: categoryOf(main.surface),
    contextLength: main.context ?? 0,
    capabilities: union(rows, ({ capabilities }) => capabilities),
    supportedParameters: rows.some(({ parameters }) => parameters !== undefined)
      ? union(rows, ({ parameters }) => parameters ?? [])
      : undefined,
    reasoning: reasoningOf(main),
    addedAtMs: Date.parse(main.released ?? "") || 0,
    routes,
  });
}

/** Returns the part of a catalog id that names the owner. */
export const ownerOf = (modelId: string): string => modelId.slice(0, modelId.indexOf("/"));

/** Returns the kind of output of a surface, in the contract's words. */
export const categoryOf = (surface: Surface): CatalogModel["category"] =>
  categories[surface] ?? "text";

const categories: Partial<Record<Surface, CatalogModel["category"]>> = {
  embeddings: "embedding",
  images: "image",
  transcriptions: "audio",
  speech: "audio",
  realtime: "audio",
};

/**
 * Returns the row of the source that knows a model best: its maker, then the marketplaces whose
 * lists are kept most carefully.
 */
function mainRow(rows: readonly FactRow[]): FactRow | undefined {
  const by = (matches: (row: FactRow) => boolean): FactRow | undefined => rows.find(matches);
  return (
    by(({ id, provider }) => definitionOf(provider)?.naming.maker === ownerOf(id)) ??
    by(({ provider }) => provider === "openrouter") ??
    by(({ provider }) => provider !== "vercel" && provider !== "ollama-cloud") ??
    rows[0]
  );
}

function factRoute(row: FactRow, main: FactRow, context: FactContext): UpstreamRoute | undefined {
  const provider = context.providers.get(row.provider);
  if (provider === undefined) return undefined;
  const isRedirected = context.redirected.has(row.provider);
  const deviation = isRedirected ? undefined : deviatingDialect(row.provider, row.upstream);
  if (deviation === "none") return undefined;
  return present({
    provider,
    upstreamModel: row.upstream,
    dialect: deviation,
    price: context.priceOf(row),
    contextLength: row.context,
    maxCompletionTokens: row.max_output,
    quantization: row.quantization,
    supportedParameters: row.parameters,
    reasoning: sameLevels(row.efforts, main.efforts) ? undefined : reasoningOf(row),
    reasoningFeature: row.surface === "chat" ? row.capabilities.includes("reasoning") : undefined,
    ...(row.surface === "chat" &&
      !isRedirected &&
      rulesFor(row.provider, {
        upstreamModel: row.upstream,
        reasons: row.efforts !== undefined || row.capabilities.includes("reasoning"),
        parameters: row.parameters,
        deviation,
      })),
  });
}

const reasoningOf = ({ efforts }: FactRow): ReasoningLevels | undefined =>
  efforts === undefined ? undefined : { levels: efforts };

const sameLevels = (
  left: readonly string[] | undefined,
  right: readonly string[] | undefined,
): boolean => left?.join() === right?.join();

/** Returns every value once, in the order of the first row that has it. */
function union(
  rows: readonly FactRow[],
  valuesOf: (row: FactRow) => readonly string[],
): readonly string[] {
  const [first] = rows;
  if (rows.length === 1 && first !== undefined) return valuesOf(first);
  return [...new Set(rows.flatMap(valuesOf))];
}

/**
 * Returns the part of a price version that identifies a configuration's prices: equal prices have
 * the same version, whenever they are read, and different ones another.
 */
export function configurationVersion(pricing: ConfiguredPricing | undefined): string {
  if (pricing === undefined) return "configuration";
  const parts = Object.entries(pricing)
    .map(([part, price]) => `${part}=${typeof price === "object" ? JSON.stringify(price) : price}`)
    .sort();
  return `configuration-${createHash("sha256").update(parts.join()).digest("hex").slice(0, 8)}`;
}

/**
 * Returns the name of a price by which a charge can be explained later, such as
 * `acme/acme/large@2026-07-02`.
 */
export const priceVersion = (providerId: string, modelId: string, version: string): string =>
  `${providerId}/${modelId}@${version}`;

const pico = (usdPerMillion: string | number | undefined): PicoUsd | undefined =>
  usdPerMillion === undefined ? undefined : picoPerTokenFromUsdPerMillion(usdPerMillion);

/** Reads prices of the facts; undefined where a row names none. */
export type FactPriceReader = (row: FactRow) => PriceRow | undefined;

/** Returns a reader for the facts of one date, which is the version of their prices. */
export function factPriceReader(snapshot: string): FactPriceReader {
  // Some five thousand prices consist of five hundred different texts.
  const read = new Map<string, PicoUsd | undefined>();
  const picoOf = (text: string | undefined): PicoUsd | undefined => {
    if (text === undefined) return undefined;
    if (!read.has(text)) read.set(text, pico(text));
    return read.get(text);
  };
  return (row) => {
    const { id, provider, prices, tiers } = row;
    if (prices === undefined) return undefined;
    const searches = callPrice(row.tools?.[searchTool]);
    const { media } = row;
    return present({
      version: priceVersion(provider, id, snapshot),
      base: present({ ...factVector(prices, picoOf), searches, ...(media && mediaVector(media)) }),
      pictures: picturePrices(media?.pictures),
      minimumMs: media?.minimum_ms,
      tiers: tiers?.map((tier) => ({
        aboveInputTokens: tier.above,
        price: present({ ...factVector(tier.prices, picoOf), searches }),
      })),
      levels: levelsOf(row, (level) => factVector(level, picoOf)),
      tools: callPrices(row.tools),
      searchesOnce: row.searches_once,
    });
  };
}

/** Prices of levels as they are written, by field and value. */
type WrittenLevels<Prices> = Partial<
  Record<(typeof levelFields)[number], Record<string, string | number | Prices> | undefined>
>;

/** Reads price levels: factors of the ordinary price, and prices of their own. */
function levelsOf<Prices>(
  written: WrittenLevels<Prices>,
  vectorOf: (prices: Prices) => PriceVector,
): PriceLevels | undefined {
  if (levelFields.every((field) => written[field] === undefined)) return undefined;
  const levels: PriceLevels = {};
  for (const field of levelFields) {
    const values = written[field];
    if (values === undefined) continue;
    levels[field] = Object.fromEntries(
      Object.entries(values).map(([value, level]): [string, PriceLevel] => [
        value,
        typeof level === "string" || typeof level === "number"
          ? { factor: parseDecimal(level, factorDigits) ?? 0n }
          : { base: vectorOf(level) },
      ]),
    );
  }
  return levels;
}

/** The decimal places of factors, which are counted in ten-thousandths. */
const factorDigits = 4;

/** Converts USD per call to pico-USD. */
const callPrice = (usd: string | number | undefined): PicoUsd | undefined =>
  usd === undefined ? undefined : parseDecimal(usd, 12);

/** Returns the prices of tools by their names; searches are in the vector. */
function callPrices(
  tools: Readonly<Record<string, string | number>> | undefined,
): PriceRow["tools"] | undefined {
  if (tools === undefined) return undefined;
  const { [searchTool]: _, ...others } = tools;
  const entries = Object.entries(others).map(([name, usd]) => [name, callPrice(usd) ?? 0n]);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** Returns the prices of pictures and sound; pictures at the dearest size and quality. */
function mediaVector(media: FactMedia) {
  const pictures = picturePrices(media.pictures);
  return present({
    outputImages: pictures && dearestPicture(pictures),
    ...minutesOf(media),
    characters: pico(media.characters),
  });
}

type PicoReader = (usdPerMillion: string | undefined) => PicoUsd | undefined;

const factVector = (prices: FactPrices, picoOf: PicoReader): PriceVector =>
  present({
    inputTokens: picoOf(prices.input) ?? 0n,
    outputTokens: picoOf(prices.output) ?? 0n,
    cacheReadTokens: picoOf(prices.cache_read),
    cacheWriteTokens: picoOf(prices.cache_write),
    cacheWriteOneHourTokens: picoOf(prices.cache_write_1h),
    reasoningTokens: picoOf(prices.reasoning),
    inputAudioTokens: picoOf(prices.input_audio),
    outputAudioTokens: picoOf(prices.output_audio),
    cacheReadAudioTokens: picoOf(prices.audio_cache_read),
    inputImageTokens: picoOf(prices.image_input),
    outputImageTokens: picoOf(prices.image_output),
    cacheReadImageTokens: picoOf(prices.image_cache_read),
    request: picoOf(prices.request),
  });

/** Returns the price that an operator wrote into the configuration, of a model of a surface. */
export const configuredPriceRow = (
  version: string,
  pricing: ConfiguredPricing,
  surface: Surface = "chat",
): PriceRow => {
  const { image } = pricing;
  // A number has always been the price of pictures that a chat model reads, by token.
  const ofTokens = surface === "chat" && typeof image !== "object" ? image : undefined;
  const pictures = ofTokens === undefined ? picturePrices(image) : undefined;
  return present({
    version,
    base: present({
      ...configuredVector({ ...pricing, image: ofTokens }),
      request: callPrice(pricing.request),
      searches: callPrice(pricing.search),
      outputImages: pictures && dearestPicture(pictures),
      ...minutesOf(pricing),
      outputVideoMs: timePrice(pricing.video_second, 1_000),
      characters: pico(pricing.characters),
    }),
    levels: levelsOf(pricing, configuredVector),
    tools: callPrices(pricing.tools),
    pictures,
    minimumMs: pricing.minimum_ms,
  });
};

/** Returns the prices of sound by the minute, exact, and by the millisecond. */
const minutesOf = ({
  audio_input_minute: input,
  audio_output_minute: output,
}: Partial<Record<"audio_input_minute" | "audio_output_minute", string | number | undefined>>) => ({
  inputAudioMs: timePrice(input, 60_000),
  inputAudioMinute: callPrice(input),
  outputAudioMs: timePrice(output, 60_000),
  outputAudioMinute: callPrice(output),
});

/** Converts USD for so many milliseconds to pico-USD per millisecond, rounded up. */
function timePrice(usd: string | number | undefined, milliseconds: number): PicoUsd | undefined {
  const whole = callPrice(usd);
  if (whole === undefined) return undefined;
  const length = BigInt(milliseconds);
  return (whole + length - 1n) / length;
}

/** Returns the pico-USD of pictures by size and quality. */
function picturePrices(written: ConfiguredPricing["image"]): PicturePrices | undefined {
  if (written === undefined) return undefined;
  if (typeof written !== "object") return { default: { default: callPrice(written) ?? 0n } };
  return Object.fromEntries(
    Object.entries(written).map(([size, row]) => [
      size,
      typeof row === "object"
        ? Object.fromEntries(
            Object.entries(row).map(([quality, usd]) => [quality, callPrice(usd) ?? 0n]),
          )
        : { default: callPrice(row) ?? 0n },
    ]),
  );
}

/** Token prices as they are written; `image` is that of pictures which a chat model is sent. */
type WrittenTokens = Partial<Record<(typeof writtenTokens)[number], string | number | undefined>>;

const writtenTokens = [
  "prompt",
  "completion",
  "cache_read",
  "cache_write",
  "cache_write_1h",
  "reasoning",
  "image",
  "audio",
  "image_input",
  "image_output",
  "image_cache_read",
  "audio_input",
  "audio_output",
  "audio_cache_read",
] as const;

const configuredVector = (pricing: WrittenTokens): PriceVector =>
  present({
    inputTokens: pico(pricing.prompt) ?? 0n,
    outputTokens: pico(pricing.completion) ?? 0n,
    cacheReadTokens: pico(pricing.cache_read),
    cacheReadAudioTokens: pico(pricing.audio_cache_read),
    cacheReadImageTokens: pico(pricing.image_cache_read),
    cacheWriteTokens: pico(pricing.cache_write),
    cacheWriteOneHourTokens: pico(pricing.cache_write_1h),
    reasoningTokens: pico(pricing.reasoning),
    inputImageTokens: pico(pricing.image_input ?? pricing.image),
    inputAudioTokens: pico(pricing.audio_input ?? pricing.audio),
    outputAudioTokens: pico(pricing.audio_output),
    outputImageTokens: pico(pricing.image_output),
  });

/** Returns the price of something free. */
export const freePriceRow = (version: string): PriceRow => ({
  version,
  base: { inputTokens: 0n, outputTokens: 0n },
});
