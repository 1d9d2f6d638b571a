import { expect, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { plainLlmKey } from "../../test/support/plain-llm-key.ts";
import type { Caller } from "../identity/keys/caller.ts";
import { minuteMs } from "../platform/kernel/clock.ts";
import { AnswerHeaders } from "../http/answer-headers.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { countRequest } from "./count-request.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { RateTiers } from "./rate-tiers.ts";

const caller: Caller = {
  kind: "llm-key",
  workspace: { id: "ws_1", name: "one", plan: "go", createdAtMs: 0 },
  key: plainLlmKey(),
};

test("the go plan's five-hour window refuses paid request 3001, but no free requests", () => {
  const clock = new FakeClock();
  const counters = { limiter: new RateLimiter(clock), tiers: new RateTiers() };
  const send = (
    rateClass: "paid" | "free-model",
  ): { headers: Record<string, string>; error: unknown } => {
    const headers = new AnswerHeaders();
    try {
      countRequest(counters, { caller, rateClass, headers });
      return { headers: headers.all, error: undefined };
    } catch (error) {
      return { headers: headers.all, error };
    }
  };
  for (let minute = 0; minute < 50; minute += 1) {
    for (let count = 0; count < 60; count += 1) expect(send("paid").error).toBeUndefined();
    clock.advance(minuteMs + 250);
  }
  const { headers, error } = send("paid");
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({
    code: "rate_limit_exceeded",
    retryAfterSeconds: Number(headers["x-ratelimit-reset"]),
    metadata: { tier: "starter-window", window_seconds: 18_000 },
  });
  expect(headers).toMatchObject({
    "x-ratelimit-tier": "starter-window",
    "x-ratelimit-limit": "3000",
    "x-ratelimit-window": "18000",
    "ratelimit-policy": "3000;w=18000",
    "x-ratelimit-remaining": "0",
    "ratelimit-remaining": "0",
  });
  expect(Number(headers["x-ratelimit-reset"])).toBeWithin(1, 18_000);
  expect(send("free-model").error).toBeUndefined();
});
