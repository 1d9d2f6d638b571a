import { describe, expect, test } from "bun:test";
import type { PriceRow } from "../../billing/ledger/price.ts";
import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import { comparablePrice, estimatedCostNano, type Candidate } from "./candidate.ts";

const price: PriceRow = {
  version: "v",
  base: { inputTokens: 1_000_000n, outputTokens: 3_000_000n },
  tiers: [
    { aboveInputTokens: 100_000, price: { inputTokens: 2_000_000n, outputTokens: 6_000_000n } },
  ],
};

const candidate = (id: string, known?: PriceRow): Candidate => ({
  model: { id } as CatalogModel,
  route: (known === undefined ? {} : { price: known }) as UpstreamRoute,
  modelIndex: 0,
  router: undefined,
  price: 0,
  reason: "",
  memberReason: "",
});

describe("comparablePrice", () => {
  test.each([
    ["of short input is the base price", 100_000, 4_000_000],
    ["of long input is the tier price", 100_001, 8_000_000],
  ])("%s", (_, inputTokens, expected) => {
    expect(comparablePrice({ price } as UpstreamRoute, inputTokens)).toBe(expected);
  });

  test("of an unpriced route is higher than any price", () => {
    expect(comparablePrice({} as UpstreamRoute)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("estimatedCostNano", () => {
  const expected = { inputTokens: 1_000, outputTokens: 500 };

  test("is the cost of the expected tokens", () => {
    expect(estimatedCostNano(candidate("acme/large", price), expected)).toBe(2_500_000n);
    expect(
      estimatedCostNano(candidate("acme/large", price), { ...expected, inputTokens: 200_000 }),
    ).toBe(403_000_000n);
  });

  test("is zero for free routes, and undefined without a price", () => {
    expect(estimatedCostNano(candidate("acme/large:free", price), expected)).toBe(0n);
    expect(
      estimatedCostNano(
        candidate("acme/zero", { version: "v", base: { inputTokens: 0n, outputTokens: 0n } }),
        expected,
      ),
    ).toBe(0n);
    expect(estimatedCostNano(candidate("acme/large"), expected)).toBeUndefined();
  });
});
