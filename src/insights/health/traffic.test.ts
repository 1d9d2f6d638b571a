import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { attemptOf, recordOf } from "../../../test/support/generation-records.ts";
import { minuteMs, dayMs } from "../../platform/kernel/clock.ts";
import { Traffic } from "./traffic.ts";
import { ProviderBudgets } from "./provider-budgets.ts";

test("traffic sums cover the last hour by minute", () => {
  const clock = new FakeClock();
  const traffic = new Traffic(clock);
  for (let minute = 0; minute < 180; minute += 1) {
    traffic.settled(
      recordOf({
        latencyMs: minute,
        promptTokens: 2,
        status: minute % 3 === 0 ? "cut" : "completed",
      }),
    );
    clock.advance(minuteMs);
  }
  clock.advance(-1);
  const { requests, errors, timed, promptTokens, latencyMs } = traffic.ofService();
  expect({ requests, errors, timed, promptTokens }).toEqual({
    requests: 60,
    errors: 20,
    timed: 40,
    promptTokens: 120,
  });
  expect(latencyMs).toBe(
    Array.from({ length: 60 }, (_, index) => 120 + index)
      .filter((minute) => minute % 3 !== 0)
      .reduce((sum, minute) => sum + minute, 0),
  );
  clock.advance(60 * minuteMs);
  expect(traffic.ofService().requests).toBe(0);
});

test("stored requests of the last hour are recalled with their attempts, in their minutes", () => {
  const clock = new FakeClock();
  const traffic = new Traffic(clock);
  const at = (agoMinutes: number) => clock.nowMs() - agoMinutes * minuteMs;
  const outage = attemptOf({ provider: "acme", outcome: "failed", status: 500 });
  traffic.settled(recordOf({}));
  traffic.recall([
    recordOf({ createdAtMs: at(1), attempts: [attemptOf({ provider: "acme", durationMs: 7 })] }),
    recordOf({ createdAtMs: at(59), status: "failed", attempts: [outage] }),
    recordOf({ createdAtMs: at(61), attempts: [attemptOf({ provider: "acme" })] }),
  ]);
  expect(traffic.ofService()).toMatchObject({ requests: 3, errors: 1 });
  expect(traffic.ofProvider("acme")).toMatchObject({ requests: 2, errors: 1, latencyMs: 7 });
  clock.advance(2 * minuteMs);
  expect(traffic.ofProvider("acme")).toMatchObject({ requests: 1, errors: 0 });
});

test("BYOK requests are not counted in the service's traffic", () => {
  const traffic = new Traffic(new FakeClock());
  traffic.settled(
    recordOf({
      detail: {
        usage: {},
        priceVersion: null,
        price: null,
        holdNanoUsd: "0",
        credentialSource: "own_byok",
      },
    }),
  );
  expect(traffic.ofService().requests).toBe(0);
});

test("traffic of unlisted providers is summed as unattributed, and idle providers are omitted", () => {
  const clock = new FakeClock();
  const traffic = new Traffic(clock);
  traffic.attempted(attemptOf({ provider: "quiet" }));
  clock.advance(61 * minuteMs);
  for (const provider of ["secret", "hidden", "acme"])
    traffic.attempted(attemptOf({ provider, durationMs: 5 }));
  traffic.attempted(
    attemptOf({ provider: "hidden", outcome: "failed", status: 500, reason: "upstream_error" }),
  );
  const sums = traffic.ofProviders((id) => id === "acme" || id === "quiet");
  expect(
    [...sums].map(
      ([name, { requests, errors, latencyMs, timed }]) =>
        [name, requests, errors, latencyMs, timed] as unknown,
    ),
  ).toEqual([
    ["unattributed", 3, 1, 10, 2],
    ["acme", 1, 0, 5, 1],
  ]);
});

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

test("a budget signals once when it is spent, and once when the next day frees it", () => {
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

test("spending of the same day before a restart counts towards the budget", () => {
  expect(
    newBudgets([
      ["acme", 100n],
      ["other", 5n],
    ]).signals,
  ).toEqual(["acme budget-spent"]);
});
