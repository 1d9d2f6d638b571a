import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { isNightly } from "../../test/support/nightly.ts";
import { plainLlmKey } from "../../test/support/plain-llm-key.ts";
import { rateWindowEngines } from "../../test/support/rate-window-engines.ts";
import { hasRedis } from "../../test/support/redis.ts";
import type { Caller, LlmKeyCaller } from "../identity/keys/caller.ts";
import type { LlmKey } from "../identity/keys/llm-key-store.ts";
import { planIds, type PlanId } from "../identity/workspaces/workspace-store.ts";
import { hourMs, minuteMs } from "../platform/kernel/clock.ts";
import { AnswerHeaders } from "../http/answer-headers.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import {
  countRequest,
  reserveTokens,
  tokenCountOf,
  tokensUsedOf,
  type RateCounters,
  type TokensUsed,
} from "./count-request.ts";
import { RateTiers, type RateClass } from "./rate-tiers.ts";

/** The contract's table ("Limits"): plans, model class, tier and limit in 60 seconds. */
const contract = `
  free payg go pro pro_plus max | free-model | free-model | 2400
  go                            | paid       | go         | 60
  free payg                     | paid       | paid-model | 600
  pro                           | paid       | pro        | 1200
  pro_plus max                  | paid       | power      | 1800
  enterprise                    | paid       | enterprise | 2400
  enterprise                    | free-model | enterprise | 2400
  free payg go pro pro_plus max enterprise | decision | decision | 60
`;

const rows = contract
  .trim()
  .split("\n")
  .flatMap((line) => {
    const [plans = "", rateClass = "", tier = "", limit = ""] = line
      .split("|")
      .map((cell) => cell.trim());
    return plans
      .split(/\s+/)
      .map((plan) => [plan as PlanId, rateClass as RateClass, tier, Number(limit)] as const);
  });

const callerOn = (plan: PlanId, changes: Partial<LlmKey> = {}): Caller => ({
  kind: "llm-key",
  workspace: { id: "ws_1", name: "", plan, createdAtMs: 0 },
  key: plainLlmKey(changes),
});

/** What one request meets: the headers of its answer, and the refusal where there is one. */
async function meet(
  counters: RateCounters,
  caller: Caller,
  rateClass: RateClass,
): Promise<{ headers: Record<string, string>; refusal: GatewayError | undefined }> {
  const headers = new AnswerHeaders();
  try {
    await countRequest(counters, { caller, rateClass, headers });
    return { headers: headers.all, refusal: undefined };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { headers: headers.all, refusal: error };
  }
}

const windowHeaders = (tier: string, limit: number): Record<string, string> => ({
  "x-ratelimit-limit": String(limit),
  "x-ratelimit-window": "60",
  "x-ratelimit-tier": tier,
  "ratelimit-limit": String(limit),
  "ratelimit-policy": `${limit};w=60`,
});
/** Only the window of hours tells what is left. */
const leftNames = [
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "ratelimit-remaining",
  "ratelimit-reset",
];

test("the rate limit table contains every plan and class exactly once", () => {
  const wanted = planIds.flatMap((plan) =>
    ["paid", "free-model", "decision"].map((rateClass) => `${plan} ${rateClass}`),
  );
  expect(rows.map(([plan, rateClass]) => `${plan} ${rateClass}`).sort()).toEqual(wanted.sort());
});

/** Requests under way at once: so few that none waits long for the others, on any machine. */
const atOnce = 64;

/** What requests meet that come together. */
async function meetTogether(
  count: number,
  ...request: Parameters<typeof meet>
): Promise<Awaited<ReturnType<typeof meet>>[]> {
  const met: Awaited<ReturnType<typeof meet>>[] = [];
  while (met.length < count) {
    const together = Math.min(atOnce, count - met.length);
    met.push(...(await Promise.all(Array.from({ length: together }, () => meet(...request)))));
  }
  return met;
}

/** What fills a window on Valkey by day: a larger one is filled alike, with more requests. */
const filledOnValkeyMax = isNightly ? Number.POSITIVE_INFINITY : 600;

describe.each(rateWindowEngines)("rate limits on %s", (engine, newLimits) => {
  const filled = rows.filter(([, , , limit]) => engine !== "Valkey" || limit <= filledOnValkeyMax);
  const newCounters = async (clock: FakeClock, tiers = new RateTiers()): Promise<RateCounters> => ({
    limiter: await newLimits(clock),
    tiers,
  });

  describe.each(filled)("plan %s, class %s: tier %s of %d", (plan, rateClass, tier, limit) => {
    const hasQuota = plan === "go" && rateClass === "paid";

    test("admits exactly the limit within 60 seconds, and more as requests leave the window", async () => {
      const clock = new FakeClock();
      const counters = await newCounters(clock);
      const admitted = async (count: number): Promise<number> =>
        (await meetTogether(count, counters, callerOn(plan), rateClass)).filter(
          ({ refusal }) => refusal === undefined,
        ).length;
      expect(await admitted(limit / 2)).toBe(limit / 2);
      clock.advance(30_000);
      expect(await admitted(limit)).toBe(limit / 2);
      clock.advance(29_999);
      expect(await admitted(1)).toBe(0);
      clock.advance(251);
      expect(await admitted(limit)).toBe(limit / 2);
    });

    test("sends the window's headers with every response, and Retry-After with a refusal", async () => {
      const counters = await newCounters(new FakeClock());
      const first = await meet(counters, callerOn(plan), rateClass);
      expect(first.headers).toMatchObject(windowHeaders(tier, limit));
      expect(leftNames.filter((name) => name in first.headers)).toEqual(hasQuota ? leftNames : []);
      await meetTogether(limit - 1, counters, callerOn(plan), rateClass);
      const { headers, refusal } = await meet(counters, callerOn(plan), rateClass);
      expect(refusal).toMatchObject({
        code: "rate_limit_exceeded",
        status: 429,
        retryAfterSeconds: 60,
        metadata: { tier, limit, window_seconds: 60 },
      });
      expect(headers).toMatchObject(windowHeaders(tier, limit));
      expect(leftNames.filter((name) => name in headers)).toEqual(hasQuota ? leftNames : []);
    });

    test("does not refuse other keys or other classes, unless the plan shares one tier for both", async () => {
      const counters = await newCounters(new FakeClock());
      await meetTogether(limit, counters, callerOn(plan), rateClass);
      expect(
        (await meet(counters, callerOn(plan, { id: "key_2" }), rateClass)).refusal,
      ).toBeUndefined();
      const others = rows.filter(
        ([otherPlan, otherClass, otherTier]) =>
          otherPlan === plan && otherClass !== rateClass && otherTier !== tier,
      );
      for (const [, otherClass] of others)
        expect((await meet(counters, callerOn(plan), otherClass)).refusal).toBeUndefined();
      expect((await meet(counters, callerOn(plan), "account")).refusal).toBeUndefined();
    });

    test("is narrowed but never widened by a key's own rate_limit", async () => {
      const counters = await newCounters(new FakeClock());
      const narrow = callerOn(plan, { rateLimitPerMinute: 2 });
      const met = await meetTogether(3, counters, narrow, rateClass);
      expect(met.map(({ refusal }) => refusal?.code)).toEqual([
        undefined,
        undefined,
        "rate_limit_exceeded",
      ]);
      expect((await meet(counters, narrow, rateClass)).headers).toMatchObject(
        windowHeaders(tier, 2),
      );
      const wide = callerOn(plan, { id: "key_2", rateLimitPerMinute: 1_000_000 });
      expect((await meet(counters, wide, rateClass)).headers).toMatchObject(
        windowHeaders(tier, limit),
      );
    });
  });

  test("anonymous requests are limited by address to 300 in 60 seconds, an IPv6 /64 as one address", async () => {
    const counters = await newCounters(new FakeClock());
    const from = (address: string) => meet(counters, { kind: "anonymous", address }, "account");
    for (let count = 0; count < 300; count += 1)
      expect((await from(`2001:db8::${count.toString(16)}`)).refusal).toBeUndefined();
    const { headers, refusal } = await from("2001:db8::ffff:1");
    expect(refusal).toMatchObject({
      code: "ip_rate_limit_exceeded",
      status: 429,
      retryAfterSeconds: 60,
      metadata: { tier: "ip" },
    });
    expect(headers).toEqual(windowHeaders("ip", 300));
    expect((await from("2001:db8:0:1::1")).refusal).toBeUndefined();
  });

  test("configured limits replace the defaults, per minute and per five hours", async () => {
    const tiers = new RateTiers({ go: { perMinute: 5, fiveHour: 3 }, pro: { fiveHour: 2 } });
    const refusals = async (plan: PlanId) =>
      (
        await meetTogether(4, await newCounters(new FakeClock(), tiers), callerOn(plan), "paid")
      ).map(({ refusal }) => refusal?.metadata["tier"]);
    expect(await refusals("go")).toEqual([undefined, undefined, undefined, "starter-window"]);
    expect(await refusals("pro")).toEqual([
      undefined,
      undefined,
      "starter-window",
      "starter-window",
    ]);
  });

  test("a key and its child keys share a minute window; a workspace shares a five-hour window", async () => {
    const counters = await newCounters(
      new FakeClock(),
      new RateTiers({ go: { perMinute: 5, fiveHour: 3 } }),
    );
    const { key: parent } = callerOn("pro", {
      id: "parent",
      rateLimitPerMinute: 3,
    }) as LlmKeyCaller;
    const childOn = (plan: PlanId, id: string): Caller => ({
      ...(callerOn(plan, { id }) as LlmKeyCaller),
      parent,
    });
    const codes = async (plan: PlanId) =>
      (
        await Promise.all(
          ["a", "b", "a", "b"].map((id) => meet(counters, childOn(plan, id), "paid")),
        )
      ).map(({ refusal }) => refusal?.metadata["tier"]);
    expect(await codes("pro")).toEqual([undefined, undefined, undefined, "pro"]);
    expect(await codes("go")).toEqual([undefined, undefined, undefined, "go"]);
    expect(
      (await meet(counters, callerOn("go", { id: "other" }), "paid")).refusal?.metadata["tier"],
    ).toBe("starter-window");
  });

  test("a window of hours frees each request after the window, and counts restored requests again", async () => {
    const clock = new FakeClock();
    const counters = await newCounters(
      clock,
      new RateTiers({ go: { perMinute: 1000, fiveHour: 3 } }),
    );
    const paid = async () => {
      const { headers, refusal } = await meet(counters, callerOn("go"), "paid");
      return [refusal === undefined, headers["x-ratelimit-remaining"]];
    };
    const windowSeconds = 18_000;
    await counters.limiter.restoreHours([
      { counter: "ws_1", atMs: clock.nowMs() - 6 * hourMs, requests: 2, windowSeconds },
      { counter: "ws_1", atMs: clock.nowMs() - 4 * hourMs, requests: 2, windowSeconds },
    ]);
    expect([await paid(), await paid()]).toEqual([
      [true, "0"],
      [false, "0"],
    ]);
    const { headers } = await meet(counters, callerOn("go"), "paid");
    const resetSeconds = Number(headers["x-ratelimit-reset"]);
    expect(resetSeconds).toBeWithin(3600 - 60, 3601);
    clock.advance(resetSeconds * 1000);
    expect([await paid(), await paid(), await paid()]).toEqual([
      [true, "1"],
      [true, "0"],
      [false, "0"],
    ]);
  });

  test("the reset of a window of hours never exceeds it, and Retry-After is long enough", async () => {
    const clock = new FakeClock();
    const counters = await newCounters(
      clock,
      new RateTiers({ go: { perMinute: 1000, fiveHour: 2 } }),
    );
    const paid = () => meet(counters, callerOn("go"), "paid");
    // The first request comes at the beginning of a minute, the second at its end.
    clock.advance(minuteMs - (clock.nowMs() % minuteMs));
    expect((await paid()).headers).toMatchObject({
      "x-ratelimit-reset": "18000",
      "x-ratelimit-remaining": "1",
    });
    clock.advance(minuteMs - 1_000);
    expect((await paid()).headers).toMatchObject({
      "x-ratelimit-reset": "18000",
      "x-ratelimit-remaining": "0",
    });
    clock.advance(hourMs);
    const { refusal, headers } = await paid();
    expect(refusal).toMatchObject({
      status: 429,
      retryAfterSeconds: 4 * 3600,
      metadata: { tier: "starter-window" },
    });
    expect(headers["x-ratelimit-reset"]).toBe(String(4 * 3600));
    clock.advance(4 * hourMs - 1_000);
    expect((await paid()).refusal?.retryAfterSeconds).toBe(1);
    clock.advance(1_000);
    expect((await paid()).refusal).toBeUndefined();
  });

  test("a key's tokens-per-minute limit counts estimated tokens, then used tokens, for a minute", async () => {
    const clock = new FakeClock();
    const counters = await newCounters(clock);
    const { key, workspace } = callerOn("pro", { tokensPerMinute: 100 }) as LlmKeyCaller;
    const child = callerOn("pro", { id: "child", tokensPerMinute: 60 }) as LlmKeyCaller;
    const reserve = async (keys: Pick<LlmKeyCaller, "key" | "parent">, tokens: number) => {
      try {
        const caller = { ...keys, workspace };
        const count = tokenCountOf(caller, () => tokens);
        if (count === undefined) return undefined;
        await reserveTokens(counters, count);
        return tokensUsedOf(counters, count);
      } catch (error) {
        return (error as GatewayError).metadata["limit"];
      }
    };
    const used = await reserve({ key }, 40);
    expect(await reserve({ key }, 61)).toBe(100);
    expect(await reserve({ key: child.key, parent: key }, 61)).toBe(60);
    expect(await reserve({ key: child.key, parent: key }, 50)).toBeFunction();
    (used as TokensUsed)(50);
    expect(await reserve({ key }, 1)).toBe(100);
    clock.advance(minuteMs + 250);
    expect(await reserve({ key }, 100)).toBeFunction();
    expect(await reserve({ key: plainLlmKey() }, 1_000_000)).toBeUndefined();
  });
});

if (!hasRedis)
  test.skip("rate limits on Valkey (missing: redis-server or valkey-server)", () => undefined);
