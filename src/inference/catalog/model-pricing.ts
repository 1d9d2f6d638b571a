import type { PriceRow } from "../../account/ledger/price.ts";
import type { PicoUsd } from "../../platform/lib/money.ts";
import type { UpstreamRoute } from "./model.ts";
import { present } from "./present.ts";

/**
 * `pricing` of a model object. `prompt` and `completion` are USD per single token as decimal text, the
 * others USD per million tokens as numbers; see docs/decisions/0003-model-pricing-units.md.
 */
export interface ModelPricing {
  prompt: string;
  completion: string;
  input_per_1m: number;
  output_per_1m: number;
  /** `byok`: the provider bills; `member`: the price is that of whichever member of a routing preset serves. */
  billing?: "byok" | "member";
  list_pricing?: ListPricing;
  /** Beside `billing: member`, where the other numbers are the highest: the lowest price of a member. */
  lowest?: ListPricing;
}

export interface ListPricing {
  input_per_1m: number;
  output_per_1m: number;
}

/** Pico-USD per token as the shortest decimal text of USD per token, such as `0.000003`. */
export function usdPerTokenText(pico: PicoUsd): string {
  const fraction = (pico % 1_000_000_000_000n).toString().padStart(12, "0").replace(/0+$/, "");
  const whole = (pico / 1_000_000_000_000n).toString();
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** Pico-USD per token as the JSON number of USD per million tokens. */
export const usdPerMillionNumber = (pico: PicoUsd): number => Number(pico) / 1e6;

const listPricing = ({ base }: PriceRow): ListPricing => ({
  input_per_1m: usdPerMillionNumber(base.inputTokens),
  output_per_1m: usdPerMillionNumber(base.outputTokens),
});

/** Prices of what the gateway bills. */
export const managedPricing = (price: PriceRow): ModelPricing => ({
  prompt: usdPerTokenText(price.base.inputTokens),
  completion: usdPerTokenText(price.base.outputTokens),
  ...listPricing(price),
});

/** Prices of a routing preset: the highest of its members' routes, since nobody knows yet who serves, and the lowest. */
export function memberPricing(routes: readonly UpstreamRoute[]): ModelPricing {
  const vectors = routes.flatMap(({ price }) => price?.base ?? []);
  const inputs = vectors.map(({ inputTokens }) => inputTokens).sort(byAmount);
  const outputs = vectors.map(({ outputTokens }) => outputTokens).sort(byAmount);
  const row = (at: 0 | -1): PriceRow => ({
    version: "",
    base: { inputTokens: inputs.at(at) ?? 0n, outputTokens: outputs.at(at) ?? 0n },
  });
  return { ...managedPricing(row(-1)), billing: "member", lowest: listPricing(row(0)) };
}

const byAmount = (left: PicoUsd, right: PicoUsd): number =>
  left < right ? -1 : left > right ? 1 : 0;

/** Prices of what the provider bills to the caller's own key: 0 here, the list price beside it when known. */
export const byokPricing = (price: PriceRow | undefined): ModelPricing =>
  present({
    prompt: "0",
    completion: "0",
    input_per_1m: 0,
    output_per_1m: 0,
    billing: "byok" as const,
    list_pricing: price === undefined ? undefined : listPricing(price),
  });

/** Prices of one route with every part that has a price of its own, all in USD per million tokens. */
export function routePricing({ base }: PriceRow): Record<string, number> {
  const parts = {
    input_per_1m: base.inputTokens,
    output_per_1m: base.outputTokens,
    cache_read_per_1m: base.cacheReadTokens,
    cache_write_per_1m: base.cacheWriteTokens,
    cache_write_1h_per_1m: base.cacheWriteOneHourTokens,
    reasoning_per_1m: base.reasoningTokens,
    image_per_1m: base.inputImageTokens,
    audio_per_1m: base.inputAudioTokens,
  };
  const numbers = Object.entries(parts).flatMap(([name, pico]): [string, number][] =>
    pico === undefined ? [] : [[name, usdPerMillionNumber(pico)]],
  );
  if (base.request !== undefined) numbers.push(["per_request", Number(base.request) / 1e12]);
  return Object.fromEntries(numbers);
}

/** The priced route that is cheapest for a token in and a token out. */
export function cheapestPrice(routes: readonly UpstreamRoute[]): PriceRow | undefined {
  let cheapest: PriceRow | undefined;
  for (const { price } of routes) {
    if (price !== undefined && (cheapest === undefined || weight(price) < weight(cheapest)))
      cheapest = price;
  }
  return cheapest;
}

const weight = ({ base }: PriceRow): bigint => base.inputTokens + base.outputTokens;
