import type { Caller } from "../account/keys/caller.ts";
import { countedAddress } from "../account/limits/counted-address.ts";
import { narrowedTier } from "../account/limits/rate-limiter.ts";
import type {
  CountOutcome,
  HourWindow,
  MinuteWindow,
  RequestLimits,
} from "../account/limits/request-limits.ts";
import {
  anonymousTier,
  type RateClass,
  type RateTier,
  type RateTiers,
} from "../account/limits/rate-tier.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { exhaustedQuotaHeaders, quotaHeaders, rateHeaders } from "./rate-headers.ts";

/** What counting needs: the windows and the tiers by plan. */
export interface RateCounters {
  limiter: RequestLimits;
  tiers: RateTiers;
}

interface CountedRequest {
  caller: Caller;
  rateClass: RateClass;
  /** Headers of the answer to come; the window's are written into them. */
  headers: Record<string, string>;
}

type MinuteWindows = readonly [MinuteWindow, ...MinuteWindow[]];

/** A request of a key counts in the key's window, then in that of the key which made it: so a window cannot be multiplied. */
function minutesOf({ tiers }: RateCounters, { caller, rateClass }: CountedRequest): MinuteWindows {
  if (caller.kind === "anonymous")
    return [{ counter: `ip ${countedAddress(caller.address)}`, tier: anonymousTier }];
  const tier = tiers.tierFor(caller.workspace.plan, rateClass);
  const windowOf = (id: string, perMinute: number | null = null): MinuteWindow => ({
    counter: rateClass === "account" ? `${id} account` : `${id} ${tier.id}`,
    tier: narrowedTier(tier, perMinute),
  });
  if (caller.kind === "session") return [windowOf(caller.user.id)];
  if (caller.kind === "management-key" || caller.kind === "connection")
    return [windowOf(caller.key.id)];
  const { key, parent } = caller;
  const own = windowOf(key.id, key.rateLimitPerMinute);
  return parent === undefined ? [own] : [own, windowOf(parent.id, parent.rateLimitPerMinute)];
}

/** The window of hours that a request counts in beside its minute: its workspace's, since the plan is the workspace's. */
function hoursOf(
  { tiers }: RateCounters,
  { caller, rateClass }: CountedRequest,
): HourWindow | undefined {
  if (caller.kind !== "llm-key") return undefined;
  const quota = tiers.quotaFor(caller.workspace.plan, rateClass);
  return quota && { quota, counter: caller.workspace.id };
}

/**
 * Counts a request against its caller's windows, writes the headers, and refuses it when one of them is full; with
 * windows that processes share, once they have answered.
 */
export function countRequest(
  counters: RateCounters,
  request: CountedRequest,
): Promise<void> | undefined {
  const counted = counters.limiter.count({
    minutes: minutesOf(counters, request),
    hours: hoursOf(counters, request),
  });
  if (counted instanceof Promise) return counted.then((outcome) => tell(request, outcome));
  tell(request, counted);
  return undefined;
}

/** Counts a request against a window of its address alone, writes the headers, and refuses it when the window is full. */
export function countAddress(
  { limiter }: RateCounters,
  { address, tier, headers }: { address: string; tier: RateTier; headers: Record<string, string> },
): Promise<void> | undefined {
  const request: CountedRequest = {
    caller: { kind: "anonymous", address },
    rateClass: "account",
    headers,
  };
  const counted = limiter.count({
    minutes: [{ counter: `${tier.id} ${countedAddress(address)}`, tier }],
    hours: undefined,
  });
  if (counted instanceof Promise) return counted.then((outcome) => tell(request, outcome));
  tell(request, counted);
  return undefined;
}

/** Counts actions of a key in a window of their own, apart from its requests, and refuses those that the window has no room for. */
export async function countActions(
  { limiter }: RateCounters,
  { keyId, tier, actions }: { keyId: string; tier: RateTier; actions: number },
): Promise<void> {
  for (let action = 0; action < actions; action += 1) {
    const { admitted } = await limiter.count({
      minutes: [{ counter: `${keyId} ${tier.id}`, tier }],
      hours: undefined,
    });
    if (!admitted)
      throw tooMany("rate_limit_exceeded", {
        tier: tier.id,
        limit: tier.perMinute,
        windowSeconds: 60,
      });
  }
}

function tell({ caller, headers }: CountedRequest, { admitted, tier, hours }: CountOutcome): void {
  Object.assign(headers, rateHeaders(tier));
  if (hours !== undefined) Object.assign(headers, quotaHeaders(hours.state));
  if (!admitted) {
    throw tooMany(caller.kind === "anonymous" ? "ip_rate_limit_exceeded" : "rate_limit_exceeded", {
      tier: tier.id,
      limit: tier.perMinute,
      windowSeconds: 60,
    });
  }
  if (hours === undefined || hours.hasRoom) return;
  const { quota, resetSeconds } = hours.state;
  Object.assign(headers, exhaustedQuotaHeaders(quota));
  throw tooMany("rate_limit_exceeded", {
    tier: quota.id,
    limit: quota.requests,
    windowSeconds: quota.windowSeconds,
    retryAfterSeconds: Math.max(1, resetSeconds),
  });
}

function tooMany(
  code: "ip_rate_limit_exceeded" | "rate_limit_exceeded",
  {
    tier,
    limit,
    windowSeconds,
    retryAfterSeconds = 60,
  }: { tier: string; limit: number; windowSeconds: number; retryAfterSeconds?: number },
): GatewayError {
  const span = windowSeconds < 3600 ? `${windowSeconds} seconds` : `${windowSeconds / 3600} hours`;
  return new GatewayError(
    code,
    `More than ${limit} requests came within ${span} (tier ${tier}). Wait and send fewer.`,
    {
      // The contract's figure for a window of 60 seconds; one of hours says when it has room again.
      retryAfterSeconds,
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
