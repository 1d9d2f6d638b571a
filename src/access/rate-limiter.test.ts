import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { narrowedTier, RateLimiter } from "./rate-limiter.ts";
import { anonymousTier, RateTiers, type RateTier } from "./rate-tiers.ts";

describe("sliding window", () => {
  test("admits exactly 600 of a limit of 600, and more after a minute", () => {
    const clock = new FakeClock();
    const limiter = new RateLimiter(clock);
    const tier = new RateTiers().tierFor("payg", "paid");
    const burst = (count: number): number =>
      Array.from({ length: count }, () =>
        limiter.count({ minutes: [{ counter: "k", tier }], hours: undefined }),
      ).filter(({ admitted }) => admitted).length;
    expect(burst(300)).toBe(300);
    clock.advance(30_000);
    expect(burst(500)).toBe(300);
    clock.advance(29_000);
    expect(burst(1)).toBe(0);
    clock.advance(1_250);
    expect(burst(500)).toBe(300);
    clock.advance(600_000);
    expect(burst(1_000)).toBe(600);
  });

  test("a key's own limit narrows its tier and never widens it", () => {
    const tier = { id: "pro", perMinute: 3 } as const;
    expect([null, 1, 9].map((own) => narrowedTier(tier, own).perMinute)).toEqual([3, 1, 3]);
  });
});

test("at most a bounded number of addresses is counted; the oldest are dropped, keys never", () => {
  const limiter = new RateLimiter(new FakeClock());
  const pro = { id: "pro", perMinute: 1 } as const;
  const admits = (counter: string, tier: RateTier): boolean =>
    limiter.count({ minutes: [{ counter, tier }], hours: undefined }).admitted;
  const fill = (counter: string): boolean[] =>
    Array.from({ length: anonymousTier.perMinute }, () => admits(counter, anonymousTier));
  fill("ip first");
  for (let index = 0; index < 9_998; index += 1) admits(`ip ${index}`, anonymousTier);
  fill("ip last");
  expect([
    admits("key", pro),
    admits("ip first", anonymousTier),
    admits("ip last", anonymousTier),
  ]).toEqual([true, false, false]);
  admits("ip one more", anonymousTier);
  expect([
    admits("key", pro),
    admits("ip first", anonymousTier),
    admits("ip last", anonymousTier),
  ]).toEqual([false, true, false]);
});

test.each([
  ["free", "paid", "paid-model", 600],
  ["payg", "paid", "paid-model", 600],
  ["go", "paid", "go", 60],
  ["pro", "paid", "pro", 1200],
  ["pro_plus", "paid", "power", 1800],
  ["max", "paid", "power", 1800],
  ["enterprise", "paid", "enterprise", 2400],
  ["go", "free-model", "free-model", 2400],
  ["enterprise", "free-model", "enterprise", 2400],
  ["max", "decision", "decision", 60],
] as const)("plan %s with a %s request has tier %s of %d", (plan, rateClass, id, perMinute) => {
  expect(new RateTiers().tierFor(plan, rateClass)).toEqual({ id, perMinute });
});
