import { expect, test } from "bun:test";
import { routeIn } from "../../../test/support/in-process.ts";
import type { PriceVector } from "../../billing/ledger/price.ts";
import { isFreeRoute } from "./model.ts";

const nothing: PriceVector = { inputTokens: 0n, outputTokens: 0n };
const { model, route } = routeIn("openai-chat");
const isFree = (base: PriceVector, more: { id?: string; tier?: PriceVector } = {}): boolean =>
  isFreeRoute(
    { ...model, id: more.id ?? model.id },
    {
      ...route,
      price: {
        version: "v",
        base,
        ...(more.tier && { tiers: [{ aboveInputTokens: 100, price: more.tier }] }),
      },
    },
  );

test.each<
  [what: string, price: PriceVector, more: { id?: string; tier?: PriceVector }, free: boolean]
>([
  ["prices of zero", nothing, {}, true],
  [
    "all price parts and tiers of zero",
    { ...nothing, reasoningTokens: 0n, cacheWriteTokens: 0n, request: 0n },
    { tier: nothing },
    true,
  ],
  [
    "a :free id with a price",
    { inputTokens: 5n, outputTokens: 5n },
    { id: "acme/large:free" },
    true,
  ],
  ["a price for input", { ...nothing, inputTokens: 1n }, {}, false],
  ["a price per request", { ...nothing, request: 1n }, {}, false],
  ["a price for reasoning only", { ...nothing, reasoningTokens: 7n }, {}, false],
  ["a price for cache writes only", { ...nothing, cacheWriteTokens: 7n }, {}, false],
  ["a price for audio only", { ...nothing, outputAudioTokens: 7n }, {}, false],
  [
    "a price for long requests only",
    nothing,
    { tier: { inputTokens: 1n, outputTokens: 0n } },
    false,
  ],
])("isFree for %s returns %p", (_, price, more, free) => {
  expect(isFree(price, more)).toBe(free);
});

test("isFreeRoute is false for a route without a price", () => {
  const { price: _, ...unpriced } = route;
  expect(isFreeRoute(model, unpriced)).toBe(false);
});
