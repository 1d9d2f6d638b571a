import { createHash } from "node:crypto";
import type { PriceRow, PriceVector } from "../../account/ledger/price.ts";
import {
  parseDecimal,
  picoPerTokenFromUsdPerMillion,
  type PicoUsd,
} from "../../platform/lib/money.ts";
import type { FactPrices, FactRow } from "./catalog-facts.ts";
import type { ConfiguredPricing } from "./configured-provider.ts";
import { present } from "./present.ts";

/**
 * The part of a price version that says which prices of a configuration those are: the same prices have the same
 * version, whenever they are read, and others have another.
 */
export function configurationVersion(pricing: ConfiguredPricing | undefined): string {
  if (pricing === undefined) return "configuration";
  const parts = Object.entries(pricing)
    .map(([part, price]) => `${part}=${price}`)
    .sort();
  return `configuration-${createHash("sha256").update(parts.join()).digest("hex").slice(0, 8)}`;
}

/** Names a price so that a charge can be explained later, such as `acme/acme/large@2026-07-02`. */
export const priceVersion = (providerId: string, modelId: string, version: string): string =>
  `${providerId}/${modelId}@${version}`;

const pico = (usdPerMillion: string | number | undefined): PicoUsd | undefined =>
  usdPerMillion === undefined ? undefined : picoPerTokenFromUsdPerMillion(usdPerMillion);

/** Reads prices of the facts; undefined where a row names none. */
export type FactPriceReader = (row: FactRow) => PriceRow | undefined;

/** A reader for the facts of one date, which is the version of their prices. */
export function factPriceReader(snapshot: string): FactPriceReader {
  // Some five thousand prices are five hundred different texts.
  const read = new Map<string, PicoUsd | undefined>();
  const picoOf = (text: string | undefined): PicoUsd | undefined => {
    if (text === undefined) return undefined;
    if (!read.has(text)) read.set(text, pico(text));
    return read.get(text);
  };
  return ({ id, provider, prices, tiers }) =>
    prices === undefined
      ? undefined
      : present({
          version: priceVersion(provider, id, snapshot),
          base: factVector(prices, picoOf),
          tiers: tiers?.map((tier) => ({
            aboveInputTokens: tier.above,
            price: factVector(tier.prices, picoOf),
          })),
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
    request: picoOf(prices.request),
  });

/** The price that an operator wrote into the configuration. */
export const configuredPriceRow = (version: string, pricing: ConfiguredPricing): PriceRow => ({
  version,
  base: present({
    inputTokens: pico(pricing.prompt) ?? 0n,
    outputTokens: pico(pricing.completion) ?? 0n,
    cacheReadTokens: pico(pricing.cache_read),
    cacheWriteTokens: pico(pricing.cache_write),
    cacheWriteOneHourTokens: pico(pricing.cache_write_1h),
    reasoningTokens: pico(pricing.reasoning),
    inputImageTokens: pico(pricing.image),
    inputAudioTokens: pico(pricing.audio),
    request: pricing.request === undefined ? undefined : parseDecimal(pricing.request, 12),
  }),
});

/** The price of what costs nothing. */
export const freePriceRow = (version: string): PriceRow => ({
  version,
  base: { inputTokens: 0n, outputTokens: 0n },
});
