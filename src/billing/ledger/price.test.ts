import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { picoPerTokenFromUsdPerMillion } from "../../platform/kernel/money.ts";
import { chargeFor, explainCharge, type PriceRow } from "./price.ts";

const usd = (text: string): bigint => picoPerTokenFromUsdPerMillion(text) ?? -1n;

const row: PriceRow = {
  version: "acme/large@test",
  base: {
    inputTokens: usd("0.50"),
    outputTokens: usd("1.50"),
    cacheReadTokens: usd("0.05"),
    cacheWriteTokens: usd("0.60"),
  },
  tiers: [{ aboveInputTokens: 200_000, price: { inputTokens: usd("1"), outputTokens: usd("3") } }],
};

describe("chargeFor", () => {
  test.each([
    ["an empty usage at zero", {}, 0n],
    ["input and output", { inputTokens: 1000, outputTokens: 500 }, 500_000n + 750_000n],
    [
      "cache reads and cache writes at their own prices",
      { inputTokens: 10, cacheReadTokens: 100, cacheWriteTokens: 20 },
      5_000n + 5_000n + 12_000n,
    ],
    ["one-hour cache writes like other cache writes", { cacheWriteOneHourTokens: 10 }, 6_000n],
    ["reasoning tokens at the price of output by default", { reasoningTokens: 100 }, 150_000n],
    [
      "audio tokens at the price of text by default",
      { inputAudioTokens: 2, outputAudioTokens: 2 },
      1_000n + 3_000n,
    ],
    [
      "the whole request at the tier that its total input reaches",
      { inputTokens: 100_000, cacheReadTokens: 100_001 },
      200_001_000n,
    ],
  ])("prices %s", (_, usage, expected) => {
    expect(chargeFor(row, usage)).toBe(expected);
  });

  test("computes exact charges for a price of 37.5 nano-USD per token", () => {
    const cheap: PriceRow = {
      version: "v",
      base: { inputTokens: usd("0.0375"), outputTokens: 0n },
    };
    expect(chargeFor(cheap, { inputTokens: 2 })).toBe(75n);
    expect(chargeFor(cheap, { inputTokens: 1 })).toBe(38n);
  });

  test("the lines of an explained charge add up to the charge", () => {
    const price = fc.bigInt({ min: 0n, max: 100_000_000n });
    const count = fc.option(fc.nat({ max: 3_000_000 }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.record({
          inputTokens: price,
          outputTokens: price,
          cacheReadTokens: price,
          request: price,
        }),
        fc.record({
          inputTokens: count,
          outputTokens: count,
          cacheReadTokens: count,
          reasoningTokens: count,
        }),
        (base, counts) => {
          const usage = Object.fromEntries(
            Object.entries(counts).filter(([, value]) => value !== undefined),
          );
          const priced: PriceRow = { version: "v", base };
          const sum = explainCharge(priced, usage).reduce(
            (total, line) => total + line.amountNanoUsd,
            0n,
          );
          expect(sum).toBe(chargeFor(priced, usage));
        },
      ),
    );
  });
});
