import { expect, test } from "bun:test";
import type { CatalogFacts, FactRow } from "./catalog-facts.ts";
import { compareFacts } from "./facts-change.ts";

const row = (more: Partial<FactRow> = {}): FactRow => ({
  id: "acme/large",
  provider: "acme",
  upstream: "l",
  name: "L",
  surface: "chat",
  capabilities: [],
  ...more,
});

const facts = (...rows: FactRow[]): CatalogFacts => ({
  source: "s",
  licence: "MIT",
  snapshot: "2026-07-02",
  units: "u",
  aliases: {},
  rows,
});

test("rows come, go and change", () => {
  const change = compareFacts(
    facts(row({ provider: "a" }), row({ provider: "b" }), row({ provider: "c" })),
    facts(row({ provider: "b" }), row({ provider: "c", context: 5 }), row({ provider: "d" })),
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
  ["up by more", "2", "3.000001", true],
  ["down by half", "2", "1", false],
  ["down by more", "2", "0.999999", true],
  ["from nothing to something", "0", "0.1", true],
  ["from something to nothing", "0.1", "0", true],
  ["nowhere", "0", "0", false],
])("a price that moves %s (%s -> %s)", (_, from, to, isLarge) => {
  const prices = (input: string) => ({ prices: { input, output: "1" } });
  const { priceMoves } = compareFacts(
    facts(row(prices(from))),
    facts(row({ ...prices(to), context: 1 })),
  );
  expect(priceMoves).toEqual(isLarge ? [`acme acme/large: input ${from} -> ${to}`] : []);
});

test("tiers and cache prices are watched too, parts that come and go are no moves", () => {
  const tiered = (input: string, read?: string) =>
    row({
      prices: { input: "1", output: "1", ...(read !== undefined && { cache_read: read }) },
      tiers: [{ above: 200, prices: { input, output: "1" } }],
    });
  expect(compareFacts(facts(tiered("1", "0.1")), facts(tiered("9", "0.5"))).priceMoves).toEqual([
    "acme acme/large: cache_read 0.1 -> 0.5",
    "acme acme/large above 200 tokens: input 1 -> 9",
  ]);
  expect(compareFacts(facts(tiered("1")), facts(tiered("1", "0.5"))).priceMoves).toEqual([]);
  expect(compareFacts(facts(row()), facts(tiered("1"))).priceMoves).toEqual([]);
});
