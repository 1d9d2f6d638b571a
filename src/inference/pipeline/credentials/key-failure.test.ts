import { expect, test } from "bun:test";
import { asKeyFailure, isMendedByAnotherKey, verdictOf } from "./provider-credentials.ts";
import { classifyStatus, type AttemptFailure } from "../../upstream/upstream-failure.ts";

const failure = (
  status: number,
  message: string | null = null,
  upstreamCode: string | null = null,
): AttemptFailure =>
  classifyStatus({ status, message, upstreamCode, headers: { "retry-after": "7" } });

/** As vendors write them. */
const failures: [
  vendor: string,
  failure: AttemptFailure,
  own: string,
  pooled: string,
  verdict: string | undefined,
][] = [
  [
    "OpenAI, wrong key",
    failure(401, "Incorrect API key provided: sk-***", "invalid_api_key"),
    "upstream_401",
    "upstream_401",
    "refused",
  ],
  [
    "Google, wrong key",
    failure(400, "API key not valid. Please pass a valid API key."),
    "upstream_401",
    "upstream_401",
    "refused",
  ],
  [
    "xAI, wrong key",
    failure(400, "Incorrect API key provided: xa***."),
    "upstream_401",
    "upstream_401",
    "refused",
  ],
  [
    "DeepSeek: no balance",
    failure(402, "Insufficient Balance"),
    "upstream_402",
    "upstream_error",
    "refused",
  ],
  [
    "OpenAI: no balance",
    failure(429, "You exceeded your current quota", "insufficient_quota"),
    "upstream_402",
    "upstream_error",
    "refused",
  ],
  [
    "Anthropic: no balance",
    failure(400, "Your credit balance is too low"),
    "upstream_402",
    "upstream_error",
    "refused",
  ],
  [
    "Google: rate limit",
    failure(429, "You exceeded your current quota, please check your plan and billing details."),
    "rate_limit_exceeded",
    "rate_limit_exceeded",
    "limited",
  ],
  [
    "any provider: forbidden",
    failure(403, "Country not supported"),
    "upstream_403",
    "upstream_403",
    undefined,
  ],
  [
    "any provider: bad request",
    failure(400, "max_tokens is too large"),
    "bad_request",
    "bad_request",
    undefined,
  ],
  [
    "any provider: unavailable",
    failure(503, "Our billing service is down"),
    "upstream_error",
    "upstream_error",
    undefined,
  ],
];

test.each(failures)("classifies %s", (_, judged, own, pooled, verdict) => {
  expect(asKeyFailure(judged, "own_byok")).toMatchObject({
    code: own,
    outage: false,
    upstreamMessage: judged.upstreamMessage,
  });
  expect(asKeyFailure(judged, "pool")).toMatchObject({ code: pooled, outage: false });
  // What concerns the key alone is its owner's business.
  expect(asKeyFailure(judged, "pool").upstreamMessage).toBe(
    verdict === undefined ? judged.upstreamMessage : null,
  );
  expect(verdictOf(judged)?.kind).toBe(verdict as "refused");
  if (verdict !== undefined) {
    expect(asKeyFailure(judged, "own_byok").failover).toBe(true);
    expect(isMendedByAnotherKey(asKeyFailure(judged, "own_byok"))).toBe(true);
  }
});

test("a refusal has no retry time, and a rate limit has the provider's", () => {
  expect(asKeyFailure(failure(402), "own_byok").retryAfterSeconds).toBeUndefined();
  expect(asKeyFailure(failure(429), "own_byok").retryAfterSeconds).toBe(7);
  expect(verdictOf(failure(429))).toEqual({ kind: "limited", retryAfterSeconds: 7 });
});
