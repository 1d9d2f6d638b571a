import type { Caller } from "../account/keys/caller.ts";
import type { RateDecision, RateLimiter } from "../account/limits/rate-limiter.ts";
import { anonymousTier, type RateClass, type RateTiers } from "../account/limits/rate-tier.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { rateHeaders } from "./rate-headers.ts";

/** What counting needs: the windows and the tiers by plan. */
export interface RateCounters {
  limiter: RateLimiter;
  tiers: RateTiers;
}

function decide(counters: RateCounters, caller: Caller, rateClass: RateClass): RateDecision {
  if (caller.kind === "anonymous") return counters.limiter.admit(`ip ${caller.address}`, anonymousTier);
  const tier = counters.tiers.tierFor(caller.workspace.plan, rateClass);
  const ownLimit = caller.kind === "llm-key" ? caller.key.rateLimitPerMinute : null;
  const counter = rateClass === "account" ? `${caller.key.id} account` : `${caller.key.id} ${tier.id}`;
  return counters.limiter.admit(counter, tier, ownLimit);
}

/** Counts a request against its caller's window, writes the headers, and refuses it when the window is full. */
export function countRequest(
  counters: RateCounters,
  options: { caller: Caller; rateClass: RateClass; headers: Record<string, string> },
): void {
  const { admitted, tier } = decide(counters, options.caller, options.rateClass);
  Object.assign(options.headers, rateHeaders(tier));
  if (admitted) return;
  const anonymous = options.caller.kind === "anonymous";
  throw new GatewayError(
    anonymous ? "ip_rate_limit_exceeded" : "rate_limit_exceeded",
    `More than ${tier.perMinute} requests came within 60 seconds (tier ${tier.id}). Wait and send fewer.`,
    { retryAfterSeconds: 60, metadata: { tier: tier.id, limit: tier.perMinute, window_seconds: 60 } },
  );
}

/** Headers of the window that a request would be counted in, for answers that are given before counting. */
export function describeWindow(counters: RateCounters, caller: Caller): Record<string, string> {
  return rateHeaders(caller.kind === "anonymous" ? anonymousTier : counters.tiers.tierFor(caller.workspace.plan, "account"));
}
