import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { HealthWindows } from "./health-windows.ts";
import { RetryBudget, retryBudgetLimits } from "./retry-budget.ts";
import { shareOutages } from "./shared-outages.ts";
import { RollingDistribution } from "./rolling-distribution.ts";

const minuteMs = 60_000;

function start(): { clock: FakeClock; health: HealthWindows } {
  const clock = new FakeClock();
  return { clock, health: new HealthWindows(clock) };
}

describe("outages reported by other gateways", () => {
  /** Two gateways that hear each other at once, and what was said. */
  function two() {
    const clock = new FakeClock();
    const [here, there] = [new HealthWindows(clock), new HealthWindows(clock)];
    const said: string[] = [];
    const ears: ((message: string) => void)[] = [];
    const channelOf = (own: number) => ({
      on: (_: string, listener: (message: string) => void) => void (ears[own] = listener),
      publish: (_: string, message: string) => {
        said.push(message);
        ears[1 - own]?.(message);
      },
    });
    shareOutages(here, channelOf(0));
    shareOutages(there, channelOf(1));
    return { clock, here, there, said };
  }
  const fail = (health: HealthWindows, ...of: [string, string?]): void => {
    health.recordFailure(...of);
    health.recordFailure(...of);
  };

  test("count at once and end with the outage", () => {
    const { clock, here, there } = two();
    here.recordFailure("a");
    expect(there.hasOutage("a")).toBe(false);
    here.recordFailure("a");
    expect(there.hasOutage("a")).toBe(true);
    expect(there.errorRate("a")).toBeUndefined();
    clock.advance(29_000);
    expect(there.hasOutage("a")).toBe(true);
    clock.advance(1_000);
    expect(there.hasOutage("a")).toBe(false);
  });

  test("count for one model if only this model fails", () => {
    const { here, there } = two();
    for (let count = 0; count < 5; count += 1) here.recordSuccess("a", { model: "m" });
    fail(here, "a", "n");
    expect(there.hasOutage("a")).toBe(false);
    expect(there.hasOutage("a", "m")).toBe(false);
    expect(there.hasOutage("a", "n")).toBe(true);
  });

  test("end when the reporting gateway's ends, or when the provider responds here", () => {
    const { here, there } = two();
    fail(here, "a");
    for (let count = 0; count < 3; count += 1) here.recordSuccess("a");
    expect(there.hasOutage("a")).toBe(false);
    fail(here, "b", "m");
    there.recordSuccess("b", { model: "m" });
    expect(there.hasOutage("b", "m")).toBe(false);
    expect(here.hasOutage("b", "m")).toBe(true);
  });

  test("are reported once a second while they last, and never for a healthy provider", () => {
    const { clock, here, said } = two();
    here.recordSuccess("a");
    for (let count = 0; count < 50; count += 1) here.recordFailure("a");
    expect(said).toEqual(['["seen","a",null]']);
    clock.advance(1_000);
    here.recordFailure("a");
    expect(said).toHaveLength(2);
  });
});

describe("outages", () => {
  test("begin with two failures in 30 seconds unless most attempts succeed, and expire", () => {
    const { clock, health } = start();
    health.recordFailure("a");
    expect(health.hasOutage("a")).toBe(false);
    health.recordFailure("a");
    expect(health.hasOutage("a")).toBe(true);
    for (let count = 0; count < 3; count += 1) health.recordSuccess("a");
    expect(health.hasOutage("a")).toBe(false);
    health.recordFailure("a");
    health.recordFailure("a");
    expect(health.hasOutage("a")).toBe(true);
    clock.advance(29_000);
    expect(health.hasOutage("a")).toBe(true);
    clock.advance(1_000);
    expect(health.hasOutage("a")).toBe(false);
  });

  test("do not begin with failures more than 30 seconds apart", () => {
    const { clock, health } = start();
    health.recordFailure("a");
    clock.advance(30_000);
    health.recordFailure("a");
    expect(health.hasOutage("a")).toBe(false);
  });

  test("count for a model at a provider, and those of the provider for all of its models", () => {
    const { health } = start();
    for (let count = 0; count < 4; count += 1) health.recordSuccess("a", { model: "m/well" });
    for (let count = 0; count < 3; count += 1) health.recordFailure("a", "m/ill");
    expect([
      health.hasOutage("a"),
      health.hasOutage("a", "m/well"),
      health.hasOutage("a", "m/ill"),
    ]).toEqual([false, false, true]);
    for (let count = 0; count < 3; count += 1) health.recordFailure("a");
    expect(health.hasOutage("a", "m/well")).toBe(true);
    expect(health.hasOutage("b", "m/ill")).toBe(false);
  });
});

describe("error rates", () => {
  test("cover five minutes, by provider and by model", () => {
    const { clock, health } = start();
    expect(health.errorRate("a")).toBeUndefined();
    health.recordSuccess("a", { model: "m/one" });
    health.recordFailure("a", "m/one");
    health.recordFailure("a", "m/two");
    expect(health.errorRate("a")).toEqual({ attempts: 3, failures: 2 });
    expect(health.errorRate("a", "m/one")).toEqual({ attempts: 2, failures: 1 });
    clock.advance(4 * minuteMs);
    health.recordSuccess("a");
    clock.advance(2 * minuteMs);
    expect(health.errorRate("a")).toEqual({ attempts: 1, failures: 0 });
    expect(health.errorRate("a", "m/one")).toBeUndefined();
  });
});

/** Bounds of a bucket, which is what a percentile is true to. */
const near = (value: number | undefined, expected: number): void => {
  expect(value).toBeGreaterThan(expected / 1.03);
  expect(value).toBeLessThan(expected * 1.03);
};

describe("percentiles", () => {
  test("match the samples within the width of a bucket", () => {
    const { health } = start();
    for (let value = 1; value <= 1_000; value += 1) {
      health.recordSuccess("a", { model: "m/x", firstTokenMs: value, tokensPerSecond: value });
    }
    const measures = health.measuresOf("a", "m/x");
    for (const share of [0.5, 0.75, 0.9, 0.99]) {
      near(measures.firstTokenMs(share), share * 1_000);
      // Of throughput, the share that is at least as fast.
      near(measures.tokensPerSecond(share), (1 - share) * 1_000);
    }
  });

  test("are separate for each model and provider", () => {
    const { health } = start();
    health.recordSuccess("a", { model: "m/x", firstTokenMs: 500 });
    expect(health.measuresOf("a", "m/y").firstTokenMs(0.5)).toBeUndefined();
    expect(health.measuresOf("b", "m/x").firstTokenMs(0.5)).toBeUndefined();
    expect(health.measuresOf("a", "m/x").tokensPerSecond(0.5)).toBeUndefined();
  });

  test("use samples without a model for models without their own", () => {
    const { health } = start();
    health.recordSuccess("a", { firstTokenMs: 500 });
    health.recordSuccess("a", { model: "m/x", firstTokenMs: 50 });
    near(health.measuresOf("a", "m/x").firstTokenMs(0.5), 50);
    near(health.measuresOf("a", "m/y").firstTokenMs(0.5), 500);
  });

  test("ignore samples older than five minutes", () => {
    const { clock, health } = start();
    health.recordSuccess("a", { model: "m/x", firstTokenMs: 900 });
    clock.advance(4 * minuteMs);
    health.recordSuccess("a", { model: "m/x", firstTokenMs: 100 });
    near(health.measuresOf("a", "m/x").firstTokenMs(0.99), 900);
    clock.advance(minuteMs);
    near(health.measuresOf("a", "m/x").firstTokenMs(0.99), 100);
    clock.advance(60 * minuteMs);
    expect(health.measuresOf("a", "m/x").firstTokenMs(0.5)).toBeUndefined();
  });

  test("meet a bound that equals the value, also between the edges of buckets", () => {
    const { health } = start();
    for (const value of [0.7, 1, 1.5, 37, 42.42, 1_000, 30_000]) {
      health.recordSuccess("a", {
        model: `m/${value}`,
        firstTokenMs: value,
        tokensPerSecond: value,
      });
      const measures = health.measuresOf("a", `m/${value}`);
      const exactly = { share: 0.5, bound: value };
      expect([measures.keepsLatency(exactly), measures.keepsThroughput(exactly)]).toEqual([
        true,
        true,
      ]);
      if (value < 2) continue;
      expect(measures.keepsLatency({ share: 0.5, bound: value / 1.1 })).toBe(false);
      expect(measures.keepsThroughput({ share: 0.5, bound: value * 1.1 })).toBe(false);
    }
  });
});

describe("memory", () => {
  test("of a distribution is bounded for many equal samples, and its percentiles stay correct", () => {
    const distribution = new RollingDistribution(1);
    for (let count = 0; count < 200_000; count += 1) distribution.record(100, 0);
    distribution.record(9_000, 0);
    near(distribution.at(0.5, 0), 100);
    near(distribution.at(1, 0), 9_000);
    expect(distribution.at(0.5, 6 * minuteMs)).toBeUndefined();
  });

  test("is bounded to a thousand models, and the longest idle are dropped", () => {
    const { clock, health } = start();
    for (let index = 0; index < 1_100; index += 1) {
      clock.advance(1);
      health.recordSuccess("a", { model: `m/${index}`, firstTokenMs: 100 });
    }
    expect(health.measuresOf("a", "m/0").firstTokenMs(0.5)).toBeUndefined();
    near(health.measuresOf("a", "m/1099").firstTokenMs(0.5), 100);
    near(health.measuresOf("a", "m/100").firstTokenMs(0.5), 100);
  });
});

const { atOnce, perSecond } = retryBudgetLimits;
const failTimes = (budget: RetryBudget, count: number, nowMs = 0): void => {
  for (let failed = 0; failed < count; failed += 1) budget.count(nowMs, true);
};

test("RetryBudget refuses retries after many failures, and refills every second", () => {
  const budget = new RetryBudget(0);
  failTimes(budget, atOnce - 1);
  expect(budget.mayRetry(0)).toBe(true);
  failTimes(budget, 1);
  expect(budget.mayRetry(0)).toBe(false);
  expect(budget.mayRetry(1_000 / perSecond)).toBe(true);
});

test("RetryBudget returns a token for each success", () => {
  const budget = new RetryBudget(0);
  failTimes(budget, atOnce);
  budget.count(0, false);
  expect(budget.mayRetry(0)).toBe(true);
  failTimes(budget, 1);
  expect(budget.mayRetry(0)).toBe(false);
});

test("RetryBudget is not exhausted by a provider that serves every second request", () => {
  const budget = new RetryBudget(0);
  for (let count = 0; count < 10_000; count += 1) budget.count(0, count % 2 === 0);
  expect(budget.mayRetry(0)).toBe(true);
});

test("RetryBudget counts failures of requests in progress as a bounded debt", () => {
  const budget = new RetryBudget(0);
  failTimes(budget, atOnce + 20);
  expect(budget.mayRetry(20_000 / perSecond)).toBe(false);
  expect(budget.mayRetry(21_000 / perSecond)).toBe(true);
  failTimes(budget, 100 * atOnce, 21_000 / perSecond);
  expect(budget.mayRetry((21_000 + (atOnce + 1) * 1_000) / perSecond)).toBe(true);
});

test("docs/health.md states the numbers of RetryBudget", async () => {
  const page = await Bun.file(new URL("../../../../docs/health.md", import.meta.url)).text();
  const text = page.replaceAll("\n", " ");
  expect(text).toContain(`${atOnce} tokens (\`atOnce\`)`);
  expect(text).toContain(`${perSecond} tokens per second return over time (\`perSecond\`)`);
});
