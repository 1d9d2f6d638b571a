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
  ["no price for anything", nothing, {}, true],
  [
    "zeros all over",
    { ...nothing, reasoningTokens: 0n, cacheWriteTokens: 0n, request: 0n },
    { tier: nothing },
    true,
  ],
  [
    "a free id, whatever the price",
    { inputTokens: 5n, outputTokens: 5n },
    { id: "acme/large:free" },
    true,
  ],
  ["a price of input", { ...nothing, inputTokens: 1n }, {}, false],
  ["a price of requests", { ...nothing, request: 1n }, {}, false],
  ["a price of thoughts alone", { ...nothing, reasoningTokens: 7n }, {}, false],
  ["a price of cache writes alone", { ...nothing, cacheWriteTokens: 7n }, {}, false],
  ["a price of sound alone", { ...nothing, outputAudioTokens: 7n }, {}, false],
  [
    "a price of long requests alone",
    nothing,
    { tier: { inputTokens: 1n, outputTokens: 0n } },
    false,
  ],
])("%s: %p", (_, price, more, free) => {
  expect(isFree(price, more)).toBe(free);
});

test("a route without a price is not free", () => {
  const { price: _, ...unpriced } = route;
  expect(isFreeRoute(model, unpriced)).toBe(false);
});
