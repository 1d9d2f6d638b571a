import type { Caller } from "../account/keys/caller.ts";
import { countedAddress } from "../account/limits/counted-address.ts";
import type { Quota } from "../account/limits/quota.ts";
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
    return counters.limiter.admit(`ip ${countedAddress(caller.address)}`, anonymousTier);
  const tier = counters.tiers.tierFor(caller.workspace.plan, rateClass);
  const windowOf = (keyId: string): string =>
    rateClass === "account" ? `${keyId} account` : `${keyId} ${tier.id}`;
  if (caller.kind === "session") return counters.limiter.admit(windowOf(caller.user.id), tier);
  if (caller.kind === "management-key") return counters.limiter.admit(windowOf(caller.key.id), tier);
  const { key, parent } = caller;
  const decision = counters.limiter.admit(windowOf(key.id), tier, key.rateLimitPerMinute);
  if (parent === undefined || !decision.admitted) return decision;
  // A key and those that it made share its window, so that a window cannot be multiplied.
  const shared = counters.limiter.admit(windowOf(parent.id), tier, parent.rateLimitPerMinute);
  return shared.admitted ? decision : shared;
}

/** Counts a request against its caller's windows, writes the headers, and refuses it when one of them is full. */
export function countRequest(counters: RateCounters, request: CountedRequest): void {
  const { admitted, tier } = decide(counters, request);
  Object.assign(request.headers, rateHeaders(tier));
  const quota = quotaOf(counters, request);
  if (quota !== undefined) countInQuota(counters, { ...quota, admitted, headers: request.headers });
  if (admitted) return;
  throw tooMany(request.caller.kind === "anonymous" ? "ip_rate_limit_exceeded" : "rate_limit_exceeded", {
    tier: tier.id, limit: tier.perMinute, windowSeconds: 60,
  });
}

/** The window of hours that a request counts in beside its minute, with the name of its counter. */
function quotaOf({ tiers }: RateCounters, { caller, rateClass }: CountedRequest): { quota: Quota; counter: string } | undefined {
  if (caller.kind !== "llm-key") return undefined;
  const quota = tiers.quotaFor(caller.workspace.plan, rateClass);
  return quota && { quota, counter: (caller.parent ?? caller.key).id };
}

/** Counts a request in its window of hours, unless its minute refused it, and tells what is left. */
function countInQuota(
  { limiter: { quotas } }: RateCounters,
  { quota, counter, admitted, headers }: { quota: Quota; counter: string; admitted: boolean; headers: Record<string, string> },
): void {
  const hasRoom = !admitted || quotas.tryAdd(counter, quota);
  Object.assign(headers, quotaHeaders(quotas.stateOf(counter, quota)));
  if (hasRoom) return;
  Object.assign(headers, exhaustedQuotaHeaders(quota));
  throw tooMany("rate_limit_exceeded", { tier: quota.id, limit: quota.requests, windowSeconds: quota.windowSeconds });
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
