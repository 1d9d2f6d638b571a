import { expect, test, describe } from "bun:test";
import { readFileSync } from "node:fs";
import { providerDefinitions } from "../providers/index.ts";
import {
  compareFacts,
  bundledFactsUrl,
  readBundledFacts,
  catalogFactsSchema,
  compareText,
  factsText,
  type CatalogFacts,
  type FactRow,
} from "./catalog-facts.ts";

const row = (more: Partial<FactRow> = {}): FactRow => ({
  id: "acme/large",
  provider: "acme",
  upstream: "l",
  name: "L",
  surface: "chat",
  capabilities: [],
  ...more,
});

const factsOf = (...rows: FactRow[]): CatalogFacts => ({
  source: "s",
  licence: "MIT",
  snapshot: "2026-07-02",
  units: "u",
  aliases: {},
  rows,
});

test("compareFacts lists added, removed and changed rows", () => {
  const change = compareFacts(
    factsOf(row({ provider: "a" }), row({ provider: "b" }), row({ provider: "c" })),
    factsOf(row({ provider: "b" }), row({ provider: "c", context: 5 }), row({ provider: "d" })),
  );
  expect(change).toEqual({
    added: ["d acme/large"],
    removed: ["a acme/large"],
    changed: ["c acme/large"],
    priceMoves: [],
  });
});

test.each([
  ["up by half", "2", "3", false],
  ["up by more than half", "2", "3.000001", true],
  ["down by half", "2", "1", false],
  ["down by more than half", "2", "0.999999", true],
  ["from zero to a price", "0", "0.1", true],
  ["from a price to zero", "0.1", "0", true],
  ["not at all", "0", "0", false],
])("compareFacts: a price that moves %s (%s -> %s), large: %p", (_, from, to, isLarge) => {
  const prices = (input: string) => ({ prices: { input, output: "1" } });
  const { priceMoves } = compareFacts(
    factsOf(row(prices(from))),
    factsOf(row({ ...prices(to), context: 1 })),
  );
  expect(priceMoves).toEqual(isLarge ? [`acme acme/large: input ${from} -> ${to}`] : []);
});

test("compareFacts reports moves of tiers and cache prices, and no moves for added or removed parts", () => {
  const tiered = (input: string, read?: string) =>
    row({
      prices: { input: "1", output: "1", ...(read !== undefined && { cache_read: read }) },
      tiers: [{ above: 200, prices: { input, output: "1" } }],
    });
  expect(compareFacts(factsOf(tiered("1", "0.1")), factsOf(tiered("9", "0.5"))).priceMoves).toEqual(
    ["acme acme/large: cache_read 0.1 -> 0.5", "acme acme/large above 200 tokens: input 1 -> 9"],
  );
  expect(compareFacts(factsOf(tiered("1")), factsOf(tiered("1", "0.5"))).priceMoves).toEqual([]);
  expect(compareFacts(factsOf(row()), factsOf(tiered("1"))).priceMoves).toEqual([]);
});

const facts = readBundledFacts();

test("the facts file is valid, sorted and formatted as by a refresh, with its source and date", () => {
  expect(catalogFactsSchema.parse(facts)).toEqual(facts);
  expect(readFileSync(bundledFactsUrl, "utf8")).toBe(factsText(facts));
  expect(facts).toMatchObject({
    licence: "MIT",
    snapshot: expect.stringMatching(/^20\d\d-\d\d-\d\d$/),
  });
  expect(facts.source).toStartWith("models.dev");
});

test("each provider serves a model once, and the rows are sorted by model", () => {
  const keys = facts.rows.map(({ id, provider }) => `${id} ${provider}`);
  expect(new Set(keys).size).toBe(keys.length);
  const ids = facts.rows.map(({ id }) => id);
  expect(ids).toEqual(ids.toSorted(compareText));
});

test("every row has a provider that offers its surface", () => {
  const definitions = new Map(providerDefinitions.map((definition) => [definition.id, definition]));
  const lost = facts.rows.filter(
    ({ provider, surface }) => definitions.get(provider)?.dialects[surface] === undefined,
  );
  expect(lost).toEqual([]);
});

test("every alias refers to a model, and no alias is the id of a model", () => {
  const ids = new Set(facts.rows.map(({ id }) => id));
  expect(Object.keys(facts.aliases).filter((alias) => ids.has(alias))).toEqual([]);
  expect(Object.values(facts.aliases).filter((id) => !ids.has(id))).toEqual([]);
  expect(facts.aliases["anthropic/claude-sonnet-4.5"]).toBe("anthropic/claude-sonnet-4-5");
});

describe("well-known models have the routes and prices of 2026-07-02", () => {
  // Model, provider, wire name, prices in USD per million tokens.
  test.each([
    [
      "anthropic/claude-sonnet-4-5",
      "anthropic",
      "claude-sonnet-4-5",
      { input: "3", output: "15", cache_read: "0.3", cache_write: "3.75", cache_write_1h: "6" },
    ],
    [
      "anthropic/claude-sonnet-4-5",
      "amazon-bedrock",
      "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
      { input: "3", output: "15", cache_read: "0.3", cache_write: "3.75", cache_write_1h: "6" },
    ],
    [
      "anthropic/claude-sonnet-4-5",
      "google-vertex-anthropic",
      "claude-sonnet-4-5@20250929",
      { input: "3", output: "15", cache_read: "0.3", cache_write: "3.75", cache_write_1h: "6" },
    ],
    [
      "anthropic/claude-sonnet-4-5",
      "openrouter",
      "anthropic/claude-sonnet-4.5",
      { input: "3", output: "15", cache_read: "0.3", cache_write: "3.75", cache_write_1h: "6" },
    ],
    ["openai/gpt-5.4", "openai", "gpt-5.4", { input: "2.5", output: "15", cache_read: "0.25" }],
    ["openai/gpt-oss-120b", "deepinfra", "openai/gpt-oss-120b", { input: "0.039", output: "0.19" }],
    [
      "openai/gpt-oss-120b",
      "amazon-bedrock",
      "openai.gpt-oss-120b-1:0",
      { input: "0.15", output: "0.6" },
    ],
    [
      "google/gemini-2.5-pro",
      "google",
      "gemini-2.5-pro",
      { input: "1.25", output: "10", cache_read: "0.125" },
    ],
    [
      "meta-llama/llama-3.3-70b-instruct",
      "groq",
      "llama-3.3-70b-versatile",
      { input: "0.59", output: "0.79" },
    ],
    [
      "deepseek/deepseek-v3.2",
      "novita",
      "deepseek/deepseek-v3.2",
      { input: "0.269", output: "0.4", cache_read: "0.1345" },
    ],
    ["z-ai/glm-4.7", "zai", "glm-4.7", { input: "0.6", output: "2.2", cache_read: "0.11" }],
    [
      "moonshotai/kimi-k2.6",
      "fireworks",
      "accounts/fireworks/models/kimi-k2p6",
      { input: "0.95", output: "4", cache_read: "0.16" },
    ],
    [
      "qwen/qwen3-235b-a22b-instruct-2507",
      "openrouter",
      "qwen/qwen3-235b-a22b-2507",
      { input: "0.09", output: "0.1" },
    ],
    [
      "mistralai/mistral-medium-3.5",
      "mistral",
      "mistral-medium-2604",
      { input: "1.5", output: "7.5" },
    ],
    ["x-ai/grok-4.3", "xai", "grok-4.3", { input: "1.25", output: "2.5", cache_read: "0.2" }],
    [
      "minimax/minimax-m2.5",
      "minimax",
      "MiniMax-M2.5",
      { input: "0.3", output: "1.2", cache_read: "0.03", cache_write: "0.375" },
    ],
    [
      "cohere/command-r7b-12-2024",
      "cohere",
      "command-r7b-12-2024",
      { input: "0.0375", output: "0.15" },
    ],
    [
      "openai/text-embedding-3-small",
      "openai",
      "text-embedding-3-small",
      { input: "0.02", output: "0" },
    ],
  ])("%s on %s", (id, provider, upstream, prices) => {
    const row = facts.rows.find(
      (candidate) => candidate.id === id && candidate.provider === provider,
    );
    expect(row).toMatchObject({ upstream });
    expect(row?.prices).toEqual(prices);
  });

  test("tiers are prices of the whole request above a size", () => {
    const row = facts.rows.find(
      ({ id, provider }) => id === "openai/gpt-5.4" && provider === "openai",
    );
    expect(row?.tiers).toEqual([
      { above: 272_000, prices: { input: "5", output: "22.5", cache_read: "0.5" } },
    ]);
  });

  test.each([
    ["openai/gpt-oss-120b", 20],
    ["meta-llama/llama-3.3-70b-instruct", 15],
    ["moonshotai/kimi-k2.6", 15],
    ["deepseek/deepseek-v3.2", 12],
    ["anthropic/claude-sonnet-4-5", 8],
  ])("%s has at least %i routes", (id, count) => {
    expect(facts.rows.filter((row) => row.id === id).length).toBeGreaterThanOrEqual(count);
  });
});
