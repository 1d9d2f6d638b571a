import { expect, test } from "bun:test";
import { RetryBudget, retryBudgetLimits } from "./retry-budget.ts";

const { atOnce, perSecond } = retryBudgetLimits;
const failTimes = (budget: RetryBudget, count: number, nowMs = 0): void => {
  for (let failed = 0; failed < count; failed += 1) budget.count(nowMs, true);
};

test("so many failures at once end the fallbacks, and some come back every second", () => {
  const budget = new RetryBudget(0);
  failTimes(budget, atOnce - 1);
  expect(budget.mayRetry(0)).toBe(true);
  failTimes(budget, 1);
  expect(budget.mayRetry(0)).toBe(false);
  expect(budget.mayRetry(1_000 / perSecond)).toBe(true);
});

test("an answer gives one back", () => {
  const budget = new RetryBudget(0);
  failTimes(budget, atOnce);
  budget.count(0, false);
  expect(budget.mayRetry(0)).toBe(true);
  failTimes(budget, 1);
  expect(budget.mayRetry(0)).toBe(false);
});

test("whoever answers every second request keeps its budget", () => {
  const budget = new RetryBudget(0);
  for (let count = 0; count < 10_000; count += 1) budget.count(0, count % 2 === 0);
  expect(budget.mayRetry(0)).toBe(true);
});

test("what was under way when the last one went is owed, up to as much again", () => {
  const budget = new RetryBudget(0);
  failTimes(budget, atOnce + 20);
  expect(budget.mayRetry(20_000 / perSecond)).toBe(false);
  expect(budget.mayRetry(21_000 / perSecond)).toBe(true);
  failTimes(budget, 100 * atOnce, 21_000 / perSecond);
  expect(budget.mayRetry((21_000 + (atOnce + 1) * 1_000) / perSecond)).toBe(true);
});

test("the page on health has the same numbers", async () => {
  const page = await Bun.file(new URL("../../../docs/health.md", import.meta.url)).text();
  expect(page).toContain(
    `${atOnce} fallbacks that fail (\`atOnce\`), of which ${perSecond} a second come back`,
  );
});
