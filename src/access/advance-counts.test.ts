import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { freshRedis, hasRedis, redisMissing } from "../../test/support/redis.ts";
import { silentLogger } from "../../test/support/silent-logger.ts";
import { minuteWindow } from "../platform/rate-windows/named-windows.ts";
import { SharedState } from "../platform/shared-state/shared-state.ts";
import { AdvanceCounts, type CountedInAdvance } from "./advance-counts.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { SharedRateLimiter } from "./shared-rate-limiter.ts";

const { slotMs } = minuteWindow;

describe("requests that are counted in advance", () => {
  const start = () => {
    const clock = new FakeClock();
    const returned: CountedInAdvance[] = [];
    const counts = new AdvanceCounts({ clock, giveBack: (unused) => void returned.push(unused) });
    const take = (): boolean =>
      counts.take("caller", () => ({ owner: "ws", counters: ["key minute"] }));
    /** Sends requests, and ends their period. */
    const busyPeriod = (requests: number): void => {
      for (let index = 0; index < requests; index += 1) take();
      clock.advance(slotMs);
    };
    return { clock, returned, counts, take, busyPeriod };
  };

  test("are wanted by callers that send many, as many as they sent in the period before", () => {
    const { counts, take, busyPeriod } = start();
    busyPeriod(3);
    take();
    expect(counts.wanted("caller")).toBe(0);
    busyPeriod(20);
    take();
    expect(counts.wanted("caller")).toBe(21);
    // No more are wanted while an answer is pending.
    expect(counts.wanted("caller")).toBe(0);
  });

  test("serve until their slot ends, and what is left is given back", async () => {
    const { clock, counts, take, busyPeriod, returned } = start();
    busyPeriod(20);
    expect(take()).toBe(false);
    expect(counts.wanted("caller")).toBe(20);
    const askedAtMs = clock.monotonicMs();
    counts.put("caller", { count: 20, slot: 7, leftMs: 100, askedAtMs });
    expect([take(), take()]).toEqual([true, true]);
    clock.advance(100);
    expect(take()).toBe(false);
    while (returned.length === 0) await Bun.sleep(1);
    expect(returned).toEqual([{ owner: "ws", counters: ["key minute"], slot: 7, count: 18 }]);
  });

  test("are kept for a bounded number of callers, so that a flood of addresses takes no memory", () => {
    const { counts } = start();
    const asked = Array.from({ length: 30_000 }, (_, index) => {
      const name = `address ${index}`;
      for (let request = 0; request < 5; request += 1)
        counts.take(name, () => ({ owner: name, counters: [name] }));
      return counts.wanted(name);
    });
    expect(asked.every((wanted) => wanted === 0)).toBe(true);
    expect(counts.size).toBe(20_000);
  });
});

describe.skipIf(!hasRedis)(`windows that are counted in advance (on Valkey)${redisMissing}`, () => {
  test("two gateways admit no more than a window's number within any minute", async () => {
    const step = fc.record({
      requests: fc.nat(30),
      isFirst: fc.boolean(),
      pauseMs: fc.constantFrom(0, 20, slotMs, 1_000, 20_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const clock = new FakeClock();
        const shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
        const gateways = [0, 1].map(
          () =>
            new SharedRateLimiter({
              shared,
              ownWindows: new RateLimiter(clock),
              clock,
              nowMs: () => clock.nowMs(),
            }),
        );
        const tier = { id: "test", perMinute: 100 };
        const admittedAtMs: number[] = [];
        for (const { requests, isFirst, pauseMs } of steps) {
          const gateway = gateways[isFirst ? 0 : 1]!;
          for (let index = 0; index < requests; index += 1) {
            const { admitted } = await gateway.count({
              minutes: [{ counter: "key", tier }],
              hours: undefined,
            });
            if (admitted) admittedAtMs.push(clock.nowMs());
          }
          clock.advance(pauseMs);
        }
        shared.close();
        for (const atMs of admittedAtMs) {
          const within = admittedAtMs.filter((each) => each >= atMs && each < atMs + 60_000);
          expect(within.length).toBeLessThanOrEqual(tier.perMinute);
        }
      }),
      { numRuns: 30 },
    );
  }, 120_000);

  test("one gateway admits exactly a window's number, and asks for few of its requests", async () => {
    const clock = new FakeClock();
    const shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
    const windows = new SharedRateLimiter({
      shared,
      ownWindows: new RateLimiter(clock),
      clock,
      nowMs: () => clock.nowMs(),
    });
    const tier = { id: "test", perMinute: 1_000 };
    let [admitted, asked] = [0, 0];
    // Twenty requests in each slot of 250 ms: 1,200 of them within 15 seconds, less than a window.
    for (let slot = 0; slot < 60; slot += 1) {
      for (let index = 0; index < 20; index += 1) {
        const outcome = windows.count({ minutes: [{ counter: "key", tier }], hours: undefined });
        if (outcome instanceof Promise) asked += 1;
        if ((await outcome).admitted) admitted += 1;
      }
      clock.advance(slotMs);
    }
    expect(admitted).toBe(1_000);
    expect(asked).toBeLessThan(800);
    shared.close();
  });
});
