import type { Caller } from "../account/keys/caller.ts";
import type { RateDecision, RateLimiter } from "../account/limits/rate-limiter.ts";
import { anonymousTier, type RateClass, type RateTiers } from "../account/limits/rate-tier.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { exhaustedQuotaHeaders, quotaHeaders, rateHeaders } from "./rate-headers.ts";

/** What counting needs: the windows and the tiers by plan. */
export interface RateCounters {
  limiter: RateLimiter;
  tiers: RateTiers;
}

interface CountedRequest {
  caller: Caller;
  rateClass: RateClass;
  /** Headers of the answer to come; the window's are written into them. */
  headers: Record<string, string>;
}

function decide(counters: RateCounters, { caller, rateClass }: CountedRequest): RateDecision {
  if (caller.kind === "anonymous")
    return counters.limiter.admit(`ip ${caller.address}`, anonymousTier);
  const tier = counters.tiers.tierFor(caller.workspace.plan, rateClass);
  const ownLimit = caller.kind === "llm-key" ? caller.key.rateLimitPerMinute : null;
  const counter =
    rateClass === "account" ? `${caller.key.id} account` : `${caller.key.id} ${tier.id}`;
  return counters.limiter.admit(counter, tier, ownLimit);
}

/** Counts a request against its caller's window, writes the headers, and refuses it when the window is full. */
export function countRequest(counters: RateCounters, request: CountedRequest): void {
  const { admitted, tier } = decide(counters, request);
  Object.assign(request.headers, rateHeaders(tier));
  if (admitted) countInQuota(counters, request);
  else
    throw tooMany(
      request.caller.kind === "anonymous" ? "ip_rate_limit_exceeded" : "rate_limit_exceeded",
      {
        tier: tier.id,
        limit: tier.perMinute,
        windowSeconds: 60,
      },
    );
}

/** Counts a request in its plan's window of hours, where it has one. */
function countInQuota(
  counters: RateCounters,
  { caller, rateClass, headers }: CountedRequest,
): void {
  if (caller.kind !== "llm-key") return;
  const quota = counters.tiers.quotaFor(caller.workspace.plan, rateClass);
  if (quota === undefined) return;
  const admitted = counters.limiter.quotas.tryAdd(caller.key.id, quota);
  Object.assign(headers, quotaHeaders(counters.limiter.quotas.stateOf(caller.key.id, quota)));
  if (admitted) return;
  Object.assign(headers, exhaustedQuotaHeaders(quota));
  throw tooMany("rate_limit_exceeded", {
    tier: quota.id,
    limit: quota.requests,
    windowSeconds: quota.windowSeconds,
  });
}

function tooMany(
  code: "ip_rate_limit_exceeded" | "rate_limit_exceeded",
  { tier, limit, windowSeconds }: { tier: string; limit: number; windowSeconds: number },
): GatewayError {
  const span = windowSeconds < 3600 ? `${windowSeconds} seconds` : `${windowSeconds / 3600} hours`;
  return new GatewayError(
    code,
    `More than ${limit} requests came within ${span} (tier ${tier}). Wait and send fewer.`,
    {
      // The contract's figure for every window; of one of hours, `X-RateLimit-Reset` tells when it has room again.
      retryAfterSeconds: 60,
      metadata: { tier, limit, window_seconds: windowSeconds },
    },
  );
}

/** Headers of the window that a request would be counted in, for answers that are given before counting. */
export function describeWindow(counters: RateCounters, caller: Caller): Record<string, string> {
  return rateHeaders(
    caller.kind === "anonymous"
      ? anonymousTier
      : counters.tiers.tierFor(caller.workspace.plan, "account"),
  );
}
