import type { Quota, QuotaState } from "../account/limits/quota.ts";
import type { RateTier } from "../account/limits/rate-tier.ts";

const cache = new WeakMap<RateTier, Record<string, string>>();

/** The rate-limit headers of a tier; the same object for the same tier. */
export function rateHeaders(tier: RateTier): Record<string, string> {
  let headers = cache.get(tier);
  if (headers === undefined) {
    headers = capHeaders({ id: tier.id, requests: tier.perMinute, windowSeconds: 60 });
    cache.set(tier, headers);
  }
  return headers;
}

function capHeaders({
  id,
  requests,
  windowSeconds,
}: {
  id: string;
  requests: number;
  windowSeconds: number;
}): Record<string, string> {
  const limit = String(requests);
  return {
    "x-ratelimit-limit": limit,
    "x-ratelimit-window": String(windowSeconds),
    "x-ratelimit-tier": id,
    "ratelimit-limit": limit,
    "ratelimit-policy": `${limit};w=${windowSeconds}`,
  };
}

/** The headers of a quota that refused a request, in place of its tier's. */
export const exhaustedQuotaHeaders = (quota: Quota): Record<string, string> => capHeaders(quota);

/** What is left of a quota; only windows of hours tell it (contract: "Limits"). */
export function quotaHeaders({ remaining, resetSeconds }: QuotaState): Record<string, string> {
  const [left, reset] = [String(remaining), String(resetSeconds)];
  return {
    "x-ratelimit-remaining": left,
    "x-ratelimit-reset": reset,
    "ratelimit-remaining": left,
    "ratelimit-reset": reset,
  };
}
