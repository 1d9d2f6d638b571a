import { expect, test } from "bun:test";
import fc from "fast-check";
import { centsFromUsd, centsText, nanoFromCents, quoteOf } from "./cents.ts";

const rule = { basisPoints: 500, fixedCents: 50 };

test.each([
  // credits, fee: 5 % of the credits, a started cent counted whole, plus 50 cents
  [500, 75],
  [1_000, 100],
  [1_001, 101],
  [1_010, 101],
  [1_020, 101],
  [1_021, 102],
  [2_000, 150],
  [500_000, 25_050],
  [1, 51],
])("%i cents of credits have a fee of %i cents", (creditCents, feeCents) => {
  expect(quoteOf(creditCents, rule)).toEqual({
    creditCents,
    feeCents,
    chargeCents: creditCents + feeCents,
  });
});

test("the fee is its exact share, rounded up to the next cent", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100_000_000 }),
      fc.integer({ min: 0, max: 5_000 }),
      (creditCents, basisPoints) => {
        const { feeCents, chargeCents } = quoteOf(creditCents, { basisPoints, fixedCents: 50 });
        const exact = BigInt(creditCents) * BigInt(basisPoints);
        const share = BigInt(feeCents - 50) * 10_000n;
        expect(share >= exact && share < exact + 10_000n).toBe(true);
        expect(chargeCents).toBe(creditCents + feeCents);
      },
    ),
  );
});

test.each([
  [10, 1_000],
  [10.5, 1_050],
  [0.29, 29],
  [1_000.1, 100_010],
  [10.005, undefined],
  [1e-9, undefined],
  [1e-12, undefined],
])("centsFromUsd(%d) returns %p", (usd, cents) => expect(centsFromUsd(usd)).toBe(cents));

test("cents convert exactly to nano-USD and to text", () => {
  expect(nanoFromCents(1_105)).toBe(11_050_000_000n);
  expect([centsText(1_105, "usd"), centsText(-7, "usd")]).toEqual(["11.05 USD", "-0.07 USD"]);
});
