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

const newLimiter = (shared: SharedState, clock: FakeClock): SharedRateLimiter =>
  new SharedRateLimiter({
    shared,
    ownWindows: new RateLimiter(clock),
    clock,
    nowMs: () => clock.nowMs(),
  });

describe("requests that are counted in advance", () => {
  const start = () => {
    const clock = new FakeClock();
    const returned: CountedInAdvance[] = [];
    const counts = new AdvanceCounts({ clock, giveBack: (unused) => void returned.push(unused) });
    const take = (): boolean =>
      counts.take("caller", () => ({ owner: "ws", counters: ["key minute"], tokenKeyIds: [] }));
    /** Sends requests, and ends their period. */
    const busyPeriod = (requests: number): void => {
      for (let index = 0; index < requests; index += 1) take();
      clock.advance(slotMs);
    };
    return { clock, returned, counts, take, busyPeriod };
  };

  test("are taken by frequent callers, as many as they sent in the previous period", () => {
    const { counts, take, busyPeriod } = start();
    busyPeriod(3);
    take();
    expect(counts.wanted("caller").count).toBe(0);
    busyPeriod(20);
    take();
    expect(counts.wanted("caller").count).toBe(21);
    // No more are wanted while an answer is pending.
    expect(counts.wanted("caller").count).toBe(0);
  });

  test("are used until their slot ends, and unused ones are returned", async () => {
    const { clock, counts, take, busyPeriod, returned } = start();
    busyPeriod(20);
    expect(take()).toBe(false);
    expect(counts.wanted("caller").count).toBe(20);
    const askedAtMs = clock.monotonicMs();
    counts.put("caller", { count: 20, slot: 7, leftMs: 100, askedAtMs });
    expect([take(), take()]).toEqual([true, true]);
    clock.advance(100);
    expect(take()).toBe(false);
    while (returned.length === 0) await Bun.sleep(1);
    expect(returned).toEqual([
      { owner: "ws", counters: ["key minute"], tokenKeyIds: [], slot: 7, count: 18, tokens: 0 },
    ]);
  });

  test("carry tokens, and serve no request that is about to send more than are left", async () => {
    const { clock, counts, returned } = start();
    const take = (tokens: number): boolean =>
      counts.take("k", () => ({ owner: "ws", counters: [], tokenKeyIds: ["k"] }), tokens);
    for (let index = 0; index < 10; index += 1) take(99 + (index % 2) * 2);
    clock.advance(slotMs);
    expect(take(100)).toBe(false);
    const { count, tokensEach } = counts.wanted("k");
    expect([count, tokensEach]).toEqual([10, 100]);
    const askedAtMs = clock.monotonicMs();
    counts.put("k", { count: 3, tokensEach, slot: 7, leftMs: 100, askedAtMs });
    expect([take(150), take(200), take(150), take(0)]).toEqual([true, false, true, true]);
    counts.put("k", { count: 2, tokensEach, slot: 7, leftMs: 100, askedAtMs });
    expect(take(30)).toBe(true);
    clock.advance(100);
    expect(take(1)).toBe(false);
    while (returned.length === 0) await Bun.sleep(1);
    expect(returned).toMatchObject([{ tokenKeyIds: ["k"], count: 1, tokens: 170 }]);
  });

  test("are kept for a bounded number of callers, so that many addresses do not exhaust memory", () => {
    const { counts } = start();
    const asked = Array.from({ length: 30_000 }, (_, index) => {
      const name = `address ${index}`;
      for (let request = 0; request < 5; request += 1)
        counts.take(name, () => ({ owner: name, counters: [name], tokenKeyIds: [] }));
      return counts.wanted(name).count;
    });
    expect(asked.every((wanted) => wanted === 0)).toBe(true);
    expect(counts.size).toBe(20_000);
  });
});

describe.skipIf(!hasRedis)(`rate windows counted in advance (on Valkey)${redisMissing}`, () => {
  test("admit no more than the limit of requests over two gateways within any minute", async () => {
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
  }, 240_000);

  test("two gateways admit no more tokens than a ceiling's within any minute", async () => {
    const step = fc.record({
      requests: fc.nat(20),
      tokens: fc.constantFrom(1, 7, 40),
      isFirst: fc.boolean(),
      pauseMs: fc.constantFrom(0, 20, slotMs, 1_000, 20_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const clock = new FakeClock();
        const shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
        const gateways = [0, 1].map(() => newLimiter(shared, clock));
        const ceiling = { keyId: "key", workspaceId: "ws", perMinute: 1_000 };
        const admitted: { atMs: number; tokens: number }[] = [];
        for (const { requests, tokens, isFirst, pauseMs } of steps) {
          const gateway = gateways[isFirst ? 0 : 1]!;
          for (let index = 0; index < requests; index += 1) {
            const { fullTokens } = await gateway.count({
              minutes: [{ counter: "key", tier: { id: "test", perMinute: 10_000 } }],
              hours: undefined,
              workspaceId: "ws",
              tokens: { windows: [ceiling], tokens },
            });
            if (fullTokens === undefined) admitted.push({ atMs: clock.nowMs(), tokens });
          }
          clock.advance(pauseMs);
        }
        shared.close();
        for (const { atMs } of admitted) {
          const within = admitted.filter((each) => each.atMs >= atMs && each.atMs < atMs + 60_000);
          const total = within.reduce((sum, { tokens }) => sum + tokens, 0);
          expect(total).toBeLessThanOrEqual(ceiling.perMinute);
        }
      }),
      { numRuns: 30 },
    );
  }, 240_000);

  test("one gateway admits exactly a ceiling of tokens, and asks for few of its requests", async () => {
    const clock = new FakeClock();
    const shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
    const windows = newLimiter(shared, clock);
    const ceiling = { keyId: "key", workspaceId: "ws", perMinute: 10_000 };
    const parent = { ...ceiling, keyId: "parent", perMinute: 20_000 };
    let [admitted, asked] = [0, 0];
    // Twenty requests of ten tokens in each slot of 250 ms: 12,000 tokens within 15 seconds.
    for (let slot = 0; slot < 60; slot += 1) {
      for (let index = 0; index < 20; index += 1) {
        const outcome = windows.count({
          minutes: [{ counter: "key", tier: { id: "test", perMinute: 10_000 } }],
          hours: undefined,
          workspaceId: "ws",
          tokens: { windows: [ceiling, parent], tokens: 10 },
        });
        if (outcome instanceof Promise) asked += 1;
        if ((await outcome).fullTokens === undefined) admitted += 1;
      }
      clock.advance(slotMs);
    }
    expect(admitted).toBe(1_000);
    expect(asked).toBeLessThan(800);
    // What was counted in advance and did not come was given back to both windows.
    const left = { windows: [parent], tokens: 10_000 };
    expect(await windows.reserveTokens(left)).toBeUndefined();
    expect(await windows.reserveTokens({ ...left, tokens: 1 })).toEqual(parent);
    shared.close();
  });

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
