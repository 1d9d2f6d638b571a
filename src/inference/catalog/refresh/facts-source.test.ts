import { expect, test, describe } from "bun:test";
import { parseFactsSource, sourcePrices } from "./facts-source.ts";

const model = { id: "m", name: "M", limit: { context: 1, output: 1 }, a_new_member: true };

test("reads a dated list of providers", () => {
  const source = {
    source: "somewhere",
    snapshot: "2026-07-02",
    providers: [{ id: "p", name: "P", models: [model] }],
  };
  const parsed = parseFactsSource(source, "2026-12-01");
  expect(parsed).toMatchObject({
    source: "somewhere",
    snapshot: "2026-07-02",
    providers: [{ id: "p", models: [{ id: "m" }] }],
  });
});

test("reads api.json of models.dev with the date of the refresh", () => {
  const parsed = parseFactsSource(
    { p: { id: "p", name: "P", env: [], models: { m: model } } },
    "2026-12-01",
  );
  expect(parsed).toMatchObject({
    snapshot: "2026-12-01",
    providers: [{ id: "p", models: [{ id: "m" }] }],
  });
  expect(parsed.source).toStartWith("models.dev");
});

test.each([
  ["no providers", {}],
  ["an empty list", { source: "s", snapshot: "2026-07-02", providers: [] }],
  [
    "an invalid date",
    { source: "s", snapshot: "July", providers: [{ id: "p", name: "P", models: [] }] },
  ],
  [
    "a price that is text",
    { p: { id: "p", name: "P", models: { m: { ...model, cost: { input: "1", output: 2 } } } } },
  ],
  ["a model without a name", { p: { id: "p", name: "P", models: { m: { id: "m" } } } }],
  ["an error page", "<html>"],
])("refuses %s", (_, source) => {
  expect(() => parseFactsSource(source, "2026-12-01")).toThrow();
});

const context = { provider: "acme", catalogId: "acme/large" };

test("prices become decimal text, rounded to a pico-USD per token", () => {
  expect(
    sourcePrices({ input: 0.049999999999999996, output: 0.8999999999999999 }, context)?.prices,
  ).toEqual({ input: "0.05", output: "0.9" });
  expect(sourcePrices({ input: 0.0375, output: 1e-6 }, context)?.prices).toEqual({
    input: "0.0375",
    output: "0.000001",
  });
});

test("every price part is read, including former names", () => {
  expect(
    sourcePrices(
      {
        input: 1,
        output: 2,
        cached_input: 0.1,
        cached_write: 1.25,
        reasoning: 3,
        input_audio: 4,
        output_audio: 5,
      },
      context,
    )?.prices,
  ).toEqual({
    input: "1",
    output: "2",
    cache_read: "0.1",
    cache_write: "1.25",
    reasoning: "3",
    input_audio: "4",
    output_audio: "5",
  });
});

test("tiers are sorted by size, largest first, and tiers of other kinds are omitted", () => {
  const tier = (size: number, input: number, type?: string) => ({
    input,
    output: 1,
    tier: { size, ...(type && { type }) },
  });
  const cost = {
    input: 1,
    output: 1,
    tiers: [tier(200_000, 2), tier(500_000, 3, "context"), tier(10, 9, "time")],
  };
  expect(sourcePrices(cost, context)?.tiers).toEqual([
    { above: 500_000, prices: { input: "3", output: "1" } },
    { above: 200_000, prices: { input: "2", output: "1" } },
  ]);
});

describe("implausible cache prices are ignored:", () => {
  test.each([
    ["a free cache read with priced input", { cache_read: 0 }, "acme/large"],
    ["a cache read above the input price", { cache_read: 3 }, "acme/large"],
    ["a free cache write with priced input", { cache_write: 0 }, "acme/large"],
    ["Google's storage price per hour", { cache_write: 0.083333 }, "google/gemini-2.5-flash"],
  ])("%s", (_, cache, catalogId) => {
    expect(
      sourcePrices({ input: 1, output: 2, ...cache }, { ...context, catalogId })?.prices,
    ).toEqual({ input: "1", output: "2" });
  });

  test("a cache write above or below the input price is kept", () => {
    expect(
      sourcePrices({ input: 0.6, output: 2, cache_write: 0.375 }, context)?.prices.cache_write,
    ).toBe("0.375");
  });
});

test("Anthropic's one-hour cache writes cost twice the input", () => {
  const cost = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 };
  expect(
    sourcePrices(cost, { ...context, catalogId: "anthropic/claude-sonnet-4-5" })?.prices
      .cache_write_1h,
  ).toBe("6");
  expect(sourcePrices(cost, context)?.prices.cache_write_1h).toBeUndefined();
});

test("Perplexity's fee per request is part of the price", () => {
  const priced = sourcePrices(
    { input: 1, output: 1 },
    { provider: "perplexity", catalogId: "perplexity/sonar" },
  );
  expect(priced?.prices.request).toBe("5000");
});

describe("a row has no price if the price is", () => {
  test.each([
    ["missing", undefined, context],
    ["incomplete", { input: 1 }, context],
    ["negative", { input: -1, output: 1 }, context],
    [
      "also charged by citations",
      { input: 2, output: 8 },
      { ...context, catalogId: "perplexity/sonar-deep-research" },
    ],
    ["zero at a reseller", { input: 0, output: 0 }, { ...context, provider: "vercel" }],
    [
      "for a changing alias",
      { input: 0.3, output: 2.5 },
      { ...context, catalogId: "google/gemini-flash-latest" },
    ],
  ])("%s", (_, cost, where) => {
    expect(sourcePrices(cost, where)).toBeUndefined();
  });

  test("a price of zero is kept for providers that are not resellers", () => {
    expect(sourcePrices({ input: 0, output: 0 }, context)?.prices).toEqual({
      input: "0",
      output: "0",
    });
  });
});
