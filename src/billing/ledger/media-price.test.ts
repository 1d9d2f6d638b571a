import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { configuredPriceRow } from "../../inference/catalog/fact-model.ts";
import type { ConfiguredPricing } from "../../inference/catalog/configured/configured-provider.ts";
import type { PictureKind, Usage } from "../../platform/kernel/usage.ts";
import { heldMedia, chargeFor, explainCharge } from "./price.ts";
import { chargedPrice, chargedUsage } from "./price-levels.ts";

type Surface = "chat" | "images" | "transcriptions" | "speech";

const pictures = {
  "1024x1024": { low: "0.01", high: "0.04" },
  "1536x1024": { low: "0.02", high: "0.08" },
};
const standard = { "1024x1024": { standard: "0.04", hd: "0.08" } };

const chargeOf = (
  surface: Surface,
  { pricing, usage, picture }: { pricing: ConfiguredPricing; usage: Usage; picture?: PictureKind },
): bigint => {
  const row = configuredPriceRow("v", pricing, surface);
  const charged = chargedUsage(row, { usage, asked: undefined });
  const price = chargedPrice(row, { asked: undefined, served: undefined, usage: charged, picture });
  const lines = explainCharge(price, charged).reduce((sum, line) => sum + line.amountNanoUsd, 0n);
  expect(lines).toBe(chargeFor(price, charged));
  return chargeFor(price, charged);
};

describe("a charge for pictures", () => {
  test.each<[string, ConfiguredPricing, Usage, PictureKind, bigint]>([
    ["one price", { image: "0.02" }, { outputImages: 3 }, {}, 60_000_000n],
    [
      "of its size and quality",
      { image: pictures },
      { outputImages: 2 },
      { size: "1024x1024", quality: "low" },
      20_000_000n,
    ],
    [
      "of an open quality at the dearest of its size",
      { image: pictures },
      { outputImages: 1 },
      { size: "1536x1024" },
      80_000_000n,
    ],
    [
      "of an unknown size at the dearest",
      { image: pictures },
      { outputImages: 1 },
      { size: "512x512", quality: "low" },
      20_000_000n,
    ],
    [
      "of no named quality as standard",
      { image: standard },
      { outputImages: 1 },
      { size: "1024x1024" },
      40_000_000n,
    ],
    [
      "of any other size at the default",
      { image: { "512x512": "0.01", default: "0.03" } },
      { outputImages: 1 },
      { size: "9x9" },
      30_000_000n,
    ],
    [
      "by token where tokens were counted",
      { image: "0.9", image_output: "30", prompt: "5" },
      { inputTokens: 100, outputImages: 1, outputImageTokens: 1_000 },
      {},
      30_500_000n,
    ],
    [
      "by piece where tokens were not counted",
      { image: "0.9", image_output: "30", prompt: "5" },
      { inputTokens: 100, outputImages: 1 },
      {},
      900_500_000n,
    ],
    [
      "with pictures read at their own price",
      { image_input: "8", image_output: "30", prompt: "5" },
      { inputTokens: 10, inputImageTokens: 10, outputImageTokens: 10 },
      {},
      430_000n,
    ],
    [
      "with cached pictures at theirs",
      { image_input: "8", image_cache_read: "2", image_output: "30" },
      { cacheReadImageTokens: 10, inputImageTokens: 10 },
      {},
      100_000n,
    ],
  ])("prices pictures: %s", (_, pricing, usage, picture, expected) => {
    expect(chargeOf("images", { pricing, usage, picture })).toBe(expected);
  });

  test("keeps a number as the price of tokens that a chat model reads", () => {
    const pricing = { prompt: "1", completion: "2", image: "4" };
    expect(chargeOf("chat", { pricing, usage: { inputImageTokens: 10 } })).toBe(40_000n);
    expect(chargeOf("chat", { pricing, usage: { outputImages: 10 } })).toBe(0n);
  });
});

describe("a charge for sound", () => {
  test.each<[string, Surface, ConfiguredPricing, Usage, bigint]>([
    [
      "a minute, by the millisecond",
      "transcriptions",
      { audio_input_minute: "0.006" },
      { inputAudioMs: 60_000 },
      6_000_000n,
    ],
    [
      "a second, not a whole minute",
      "transcriptions",
      { audio_input_minute: "0.006" },
      { inputAudioMs: 1_000 },
      100_000n,
    ],
    [
      "at least what the provider bills",
      "transcriptions",
      { audio_input_minute: "0.006", minimum_ms: 10_000 },
      { inputAudioMs: 1_000 },
      1_000_000n,
    ],
    [
      "nothing for no sound",
      "transcriptions",
      { audio_input_minute: "0.006", minimum_ms: 10_000 },
      {},
      0n,
    ],
    [
      "by token",
      "transcriptions",
      { audio_input: "6", prompt: "2.5", completion: "10" },
      { inputAudioTokens: 100, inputTokens: 10, outputTokens: 20 },
      825_000n,
    ],
    ["characters", "speech", { characters: "15" }, { characters: 1_000 }, 15_000_000n],
    [
      "minutes that were made",
      "speech",
      { audio_output_minute: "0.015" },
      { outputAudioMs: 30_000 },
      7_500_000n,
    ],
    [
      "tokens that were made",
      "speech",
      { prompt: "0.6", audio_output: "12" },
      { inputTokens: 10, outputAudioTokens: 100 },
      1_206_000n,
    ],
    [
      "cached sound at its own price",
      "chat",
      { prompt: "4", completion: "16", audio_input: "32", audio_cache_read: "0.4" },
      { cacheReadAudioTokens: 100 },
      40_000n,
    ],
  ])("prices %s", (_, surface, pricing, usage, expected) => {
    expect(chargeOf(surface, { pricing, usage })).toBe(expected);
  });
});

test("what is held is never less than what is charged", () => {
  const usd = fc.integer({ min: 0, max: 10_000 }).map((price) => String(price / 1_000));
  const table = fc.dictionary(
    fc.constantFrom("1024x1024", "1536x1024", "default"),
    fc.dictionary(fc.constantFrom("low", "high", "standard", "default"), usd, { minKeys: 1 }),
    { minKeys: 1 },
  );
  const name = (...values: string[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
  fc.assert(
    fc.property(
      table,
      name("1024x1024", "auto", "9x9"),
      name("low", "auto", "max"),
      fc.integer({ min: 1, max: 10 }),
      (image, size, quality, count) => {
        const asked = { ...(size && { size }), ...(quality && { quality }) };
        const row = configuredPriceRow("v", { image }, "images");
        const use = { usage: { outputImages: count }, picture: asked };
        const charged = chargeOf("images", {
          pricing: { image },
          usage: use.usage,
          picture: asked,
        });
        const held = heldMedia(row, { vector: row.base, use });
        expect(charged * 1_000n).toBeLessThanOrEqual(held + 500n);
      },
    ),
  );
});

describe("a price by the minute", () => {
  test.each([
    ["0.034", 60_000, 34_000_000n],
    ["0.034", 1_000, 566_667n],
    ["0.0043", 36_000_000, 2_580_000_000n],
    ["0.000666666667", 3_600_000, 40_000_000n],
  ])("of %s for %d ms is charged exactly, and held", (price, inputAudioMs, nano) => {
    const pricing = { audio_input_minute: price, audio_output_minute: price };
    const row = configuredPriceRow("v", pricing, "transcriptions");
    for (const usage of [{ inputAudioMs }, { outputAudioMs: inputAudioMs }]) {
      expect(chargeOf("transcriptions", { pricing, usage })).toBe(nano);
      expect(heldMedia(row, { vector: row.base, use: { usage } })).toBeGreaterThanOrEqual(
        nano * 1_000n - 500n,
      );
    }
  });

  test("is shown exactly in the lines of a charge, and none is left where tokens are charged", () => {
    const pricing = { audio_input_minute: "0.034", audio_input: "1", completion: "0" };
    const row = configuredPriceRow("v", pricing, "transcriptions");
    const usage = { inputAudioMs: 60_000 };
    expect(explainCharge(row, usage)[0]).toMatchObject({ minutePricePicoUsd: 34_000_000_000n });
    expect(
      chargeOf("transcriptions", { pricing, usage: { ...usage, inputAudioTokens: 1_000 } }),
    ).toBe(1_000_000n);
  });
});
