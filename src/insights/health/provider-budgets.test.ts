import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { ProviderBudgets } from "./provider-budgets.ts";

function newBudgets(spent: [string, bigint][] = []) {
  const clock = new FakeClock();
  const signals: string[] = [];
  const budgets = new ProviderBudgets({
    clock,
    limits: new Map([["acme", 100n]]),
    spent: new Map(spent),
    onSignal: (id, signal) => void signals.push(`${id} ${signal}`),
  });
  return { clock, signals, budgets };
}

test("a budget is spent once, and free again on the next day", () => {
  const { clock, signals, budgets } = newBudgets();
  budgets.spend("acme", 99n);
  budgets.spend("other", 1_000n);
  expect(signals).toEqual([]);
  budgets.spend("acme", 1n);
  budgets.spend("acme", 50n);
  expect(signals).toEqual(["acme budget-spent"]);
  clock.advance(dayMs);
  budgets.check();
  budgets.check();
  budgets.spend("acme", 99n);
  expect(signals).toEqual(["acme budget-spent", "acme budget-free"]);
});

test("what the process before spent of today's budget counts", () => {
  expect(
    newBudgets([
      ["acme", 100n],
      ["other", 5n],
    ]).signals,
  ).toEqual(["acme budget-spent"]);
});
