import type { RateTier } from "../account/limits/rate-tier.ts";

const cache = new WeakMap<RateTier, Record<string, string>>();

/** The rate-limit headers of a tier; the same object for the same tier. */
export function rateHeaders(tier: RateTier): Record<string, string> {
  let headers = cache.get(tier);
  if (headers === undefined) {
    const limit = String(tier.perMinute);
    headers = {
      "x-ratelimit-limit": limit,
      "x-ratelimit-window": "60",
      "x-ratelimit-tier": tier.id,
      "ratelimit-limit": limit,
      "ratelimit-policy": `${limit};w=60`,
    };
    cache.set(tier, headers);
  }
  return headers;
}
