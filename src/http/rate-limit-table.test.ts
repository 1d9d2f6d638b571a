import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import type { Caller } from "../account/keys/caller.ts";
import type { LlmKey } from "../account/keys/llm-key.ts";
import { RateLimiter } from "../account/limits/rate-limiter.ts";
import { RateTiers, type RateClass } from "../account/limits/rate-tier.ts";
import { planIds, type PlanId } from "../account/workspaces/plan.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { countRequest, type RateCounters } from "./count-request.ts";

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

const rows = contract.trim().split("\n").flatMap((line) => {
  const [plans = "", rateClass = "", tier = "", limit = ""] = line.split("|").map((cell) => cell.trim());
  return plans.split(/\s+/).map((plan) => [plan as PlanId, rateClass as RateClass, tier, Number(limit)] as const);
});

const keyOf = (changes: Partial<LlmKey> = {}): LlmKey => ({
  id: "key_1", hash: "", workspaceId: "ws_1", name: "", label: "", createdAtMs: 0, updatedAtMs: null, expiresAtMs: null, disabled: false,
  limitNanoUsd: null, limitReset: null, includeByokInLimit: false, rateLimitPerMinute: null, tokensPerMinute: null, allowedModels: null,
  allowedEndpoints: null, creatorUserId: "", ...changes,
});
const callerOn = (plan: PlanId, changes: Partial<LlmKey> = {}): Caller =>
  ({ kind: "llm-key", workspace: { id: "ws_1", name: "", plan, createdAtMs: 0 }, key: keyOf(changes) });

const newCounters = (clock: FakeClock): RateCounters => ({ limiter: new RateLimiter(clock), tiers: new RateTiers() });

/** What one request meets: the headers of its answer, and the refusal where there is one. */
function meet(
  counters: RateCounters, caller: Caller, rateClass: RateClass,
): { headers: Record<string, string>; refusal: GatewayError | undefined } {
  const headers: Record<string, string> = {};
  try {
    countRequest(counters, { caller, rateClass, headers });
    return { headers, refusal: undefined };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { headers, refusal: error };
  }
}

const windowHeaders = (tier: string, limit: number): Record<string, string> => ({
  "x-ratelimit-limit": String(limit), "x-ratelimit-window": "60", "x-ratelimit-tier": tier, "ratelimit-limit": String(limit),
  "ratelimit-policy": `${limit};w=60`,
});
/** Only the window of hours tells what is left. */
const leftNames = ["x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit-remaining", "ratelimit-reset"];

test("the table names every plan with every class once", () => {
  const wanted = planIds.flatMap((plan) => ["paid", "free-model", "decision"].map((rateClass) => `${plan} ${rateClass}`));
  expect(rows.map(([plan, rateClass]) => `${plan} ${rateClass}`).sort()).toEqual(wanted.sort());
});

describe.each(rows)("plan %s, %s: tier %s of %d", (plan, rateClass, tier, limit) => {
  const hasQuota = plan === "go" && rateClass === "paid";

  test("admits exactly the limit within 60 seconds, and again as they pass", () => {
    const clock = new FakeClock();
    const counters = newCounters(clock);
    const admitted = (count: number): number =>
      Array.from({ length: count }, () => meet(counters, callerOn(plan), rateClass)).filter(({ refusal }) => refusal === undefined).length;
    expect(admitted(limit / 2)).toBe(limit / 2);
    clock.advance(30_000);
    expect(admitted(limit)).toBe(limit / 2);
    clock.advance(29_999);
    expect(admitted(1)).toBe(0);
    clock.advance(251);
    expect(admitted(limit)).toBe(limit / 2);
  });

  test("every answer has the window's headers, and a refusal says when to come back", () => {
    const counters = newCounters(new FakeClock());
    const first = meet(counters, callerOn(plan), rateClass);
    expect(first.headers).toMatchObject(windowHeaders(tier, limit));
    expect(leftNames.filter((name) => name in first.headers)).toEqual(hasQuota ? leftNames : []);
    for (let count = 1; count < limit; count += 1) meet(counters, callerOn(plan), rateClass);
    const { headers, refusal } = meet(counters, callerOn(plan), rateClass);
    expect(refusal).toMatchObject({
      code: "rate_limit_exceeded", status: 429, retryAfterSeconds: 60, metadata: { tier, limit, window_seconds: 60 },
    });
    expect(headers).toMatchObject(windowHeaders(tier, limit));
    expect(leftNames.filter((name) => name in headers)).toEqual(hasQuota ? leftNames : []);
  });

  test("no other class and no other key is refused by it, except where the plan has one tier for both", () => {
    const counters = newCounters(new FakeClock());
    for (let count = 0; count < limit; count += 1) meet(counters, callerOn(plan), rateClass);
    expect(meet(counters, callerOn(plan, { id: "key_2" }), rateClass).refusal).toBeUndefined();
    const others = rows.filter(([otherPlan, otherClass, otherTier]) =>
      otherPlan === plan && otherClass !== rateClass && otherTier !== tier);
    for (const [, otherClass] of others) expect(meet(counters, callerOn(plan), otherClass).refusal).toBeUndefined();
    expect(meet(counters, callerOn(plan), "account").refusal).toBeUndefined();
  });

  test("a key's own rate_limit narrows it, and never widens it", () => {
    const counters = newCounters(new FakeClock());
    const narrow = callerOn(plan, { rateLimitPerMinute: 2 });
    expect([1, 2, 3].map(() => meet(counters, narrow, rateClass).refusal?.code)).toEqual([undefined, undefined, "rate_limit_exceeded"]);
    expect(meet(counters, narrow, rateClass).headers).toMatchObject(windowHeaders(tier, 2));
    const wide = callerOn(plan, { id: "key_2", rateLimitPerMinute: 1_000_000 });
    expect(meet(counters, wide, rateClass).headers).toMatchObject(windowHeaders(tier, limit));
  });
});

test("anonymous requests count by address, 300 in 60 seconds, a whole IPv6 network as one", () => {
  const counters = newCounters(new FakeClock());
  const from = (address: string) => meet(counters, { kind: "anonymous", address }, "account");
  for (let count = 0; count < 300; count += 1) expect(from(`2001:db8::${count.toString(16)}`).refusal).toBeUndefined();
  const { headers, refusal } = from("2001:db8::ffff:1");
  expect(refusal).toMatchObject({ code: "ip_rate_limit_exceeded", status: 429, retryAfterSeconds: 60, metadata: { tier: "ip" } });
  expect(headers).toEqual(windowHeaders("ip", 300));
  expect(from("2001:db8:0:1::1").refusal).toBeUndefined();
});

test("an operator's figures take the place of the contract's, for a minute and for five hours", () => {
  const tiers = new RateTiers({ go: { perMinute: 5, fiveHour: 3 }, pro: { fiveHour: 2 } });
  const counters = { limiter: new RateLimiter(new FakeClock()), tiers };
  const refusals = (plan: PlanId) => [1, 2, 3, 4].map(() => meet(counters, callerOn(plan, { id: plan }), "paid").refusal?.metadata["tier"]);
  expect(refusals("go")).toEqual([undefined, undefined, undefined, "starter-window"]);
  expect(refusals("pro")).toEqual([undefined, undefined, "starter-window", "starter-window"]);
});
