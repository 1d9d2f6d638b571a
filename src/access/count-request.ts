import type { AnswerHeaders } from "../http/answer-headers.ts";
import { keysOf, windowKeysOf, type Caller, type LlmKeyCaller } from "../identity/keys/caller.ts";
import { countText } from "../platform/kernel/count-text.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { countedAddress } from "../platform/rate-windows/named-windows.ts";
import type { Quota, QuotaState } from "../platform/rate-windows/quota-counter.ts";
import {
  narrowedTier,
  type CountOutcome,
  type HourWindow,
  type MinuteWindow,
  type RequestLimits,
  type TokenCount,
  type TokenWindow,
} from "./rate-limiter.ts";
import { anonymousTier, type RateClass, type RateTier, type RateTiers } from "./rate-tiers.ts";

/** The dependencies of counting requests: the windows, and the tiers by plan. */
export interface RateCounters {
  limiter: RequestLimits;
  tiers: RateTiers;
}

interface CountedRequest {
  caller: Caller;
  rateClass: RateClass;
  /** The headers of the answer to come, to which the window's are added. */
  headers: AnswerHeaders;
  /** Names the request to the hold that is requested before the windows have answered. */
  ticket?: string | undefined;
  /** The tokens that are counted with the request (`tokenCountOf`). */
  tokens?: TokenCount | undefined;
  /**
   * The name of other windows of the same size, which count the request in place of its caller's.
   */
  pool?: string | undefined;
}

type MinuteWindows = readonly [MinuteWindow, ...MinuteWindow[]];

/**
 * Returns the minute windows of a key's request: the key's own, then that of the key which created
 * it, so that creating keys cannot multiply a window.
 */
function minutesOf({ tiers }: RateCounters, { caller, rateClass }: CountedRequest): MinuteWindows {
  if (caller.kind === "anonymous")
    return [{ counter: `ip ${countedAddress(caller.address)}`, tier: anonymousTier }];
  const tier = tiers.tierFor(caller.workspace.plan, rateClass);
  const name = rateClass === "account" ? "account" : tier.id;
  if (caller.kind === "session") return [{ counter: `${caller.user.id} ${name}`, tier }];
  if (caller.kind === "management-key" || caller.kind === "connection")
    return [{ counter: `${caller.key.id} ${name}`, tier }];
  const [own, parent] = windowKeysOf(caller);
  const first = windowOfKey(own, { name, tier });
  return parent === undefined ? [first] : [first, windowOfKey(parent, { name, tier })];
}

const windowOfKey = (
  { id, rateLimitPerMinute }: LlmKeyCaller["key"],
  { name, tier }: { name: string; tier: RateTier },
): MinuteWindow => ({
  counter: `${id} ${name}`,
  tier: narrowedTier(tier, rateLimitPerMinute),
});

/**
 * Returns the window of hours that a request counts in beside its minute. It belongs to the
 * workspace, since the plan does.
 */
function hoursOf(
  { tiers }: RateCounters,
  { caller, rateClass }: CountedRequest,
): HourWindow | undefined {
  if (caller.kind !== "llm-key") return undefined;
  const quota = tiers.quotaFor(caller.workspace.plan, rateClass);
  return quota && { quota, counter: caller.workspace.id };
}

const inPool = ([first, ...others]: MinuteWindows, pool: string): MinuteWindows => {
  const named = (window: MinuteWindow): MinuteWindow => ({
    ...window,
    counter: `${window.counter} ${pool}`,
  });
  return [named(first), ...others.map(named)];
};

/**
 * Counts a request against its caller's windows, adds their headers, and refuses it where one is
 * full. Where processes share the windows, this waits for their answer.
 */
export function countRequest(
  counters: RateCounters,
  request: CountedRequest,
): Promise<void> | undefined {
  const { pool } = request;
  const minutes = minutesOf(counters, request);
  const counted = counters.limiter.count({
    minutes: pool === undefined ? minutes : inPool(minutes, pool),
    hours: pool === undefined ? hoursOf(counters, request) : undefined,
    workspaceId: request.caller.kind === "llm-key" ? request.caller.workspace.id : undefined,
    ticket: request.ticket,
    tokens: request.tokens,
  });
  if (counted instanceof Promise) return counted.then((outcome) => tell(request, outcome));
  tell(request, counted);
  return undefined;
}

/**
 * Refuses a caller whose window is full, without counting anything: as far as this process has
 * counted, so that windows that several share may still refuse what it begins.
 */
export function refuseFullWindow(
  counters: RateCounters,
  request: Omit<CountedRequest, "ticket" | "tokens">,
): void {
  const full = counters.limiter.fullOf(minutesOf(counters, request));
  if (full === undefined) return;
  tell(request, { admitted: false, tier: full, hours: undefined });
}

/**
 * Counts a request against a window of its address alone, adds its headers, and refuses it where
 * the window is full.
 */
export function countAddress(
  { limiter }: RateCounters,
  { address, tier, headers }: { address: string; tier: RateTier; headers: AnswerHeaders },
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

/**
 * Counts actions of a key in a window of their own, apart from its requests, and refuses those that
 * do not fit.
 */
export async function countActions(
  { limiter }: RateCounters,
  {
    keyId,
    tier,
    actions,
    headers,
  }: { keyId: string; tier: RateTier; actions: number; headers: Pick<AnswerHeaders, "share"> },
): Promise<void> {
  for (let action = 0; action < actions; action += 1) {
    const { admitted } = await limiter.count({
      minutes: [{ counter: `${keyId} ${tier.id}`, tier }],
      hours: undefined,
    });
    if (admitted) continue;
    // The refusal names the limit that was reached, not that of the address.
    headers.share(rateHeaders(tier));
    throw tooMany("rate_limit_exceeded", {
      tier: tier.id,
      limit: tier.perMinute,
      windowSeconds: 60,
    });
  }
}

function tell(
  { caller, headers }: CountedRequest,
  { admitted, tier, hours, fullTokens }: CountOutcome,
): void {
  headers.share(rateHeaders(tier));
  if (hours !== undefined) Object.assign(headers.all, quotaHeaders(hours.state));
  if (!admitted) {
    throw tooMany(caller.kind === "anonymous" ? "ip_rate_limit_exceeded" : "rate_limit_exceeded", {
      tier: tier.id,
      limit: tier.perMinute,
      windowSeconds: 60,
      isOfKey: hasLimit(caller, tier.perMinute),
    });
  }
  if (fullTokens !== undefined) throw tooManyTokens(fullTokens);
  if (hours === undefined || hours.hasRoom) return;
  const { quota, resetSeconds } = hours.state;
  Object.assign(headers.all, exhaustedQuotaHeaders(quota));
  throw tooMany("rate_limit_exceeded", {
    tier: quota.id,
    limit: quota.requests,
    windowSeconds: quota.windowSeconds,
    retryAfterSeconds: Math.max(1, resetSeconds),
  });
}

/** Returns whether a number of requests a minute is a key's own limit, or that of a key above it. */
const hasLimit = (caller: CountedRequest["caller"], perMinute: number): boolean =>
  caller.kind === "llm-key" &&
  keysOf(caller).some(({ rateLimitPerMinute }) => rateLimitPerMinute === perMinute);

function tooMany(
  code: "ip_rate_limit_exceeded" | "rate_limit_exceeded",
  {
    tier,
    limit,
    windowSeconds,
    retryAfterSeconds = 60,
    isOfKey = false,
  }: {
    tier: string;
    limit: number;
    windowSeconds: number;
    retryAfterSeconds?: number;
    isOfKey?: boolean;
  },
): GatewayError {
  const span =
    windowSeconds < 3600 ? `${windowSeconds} seconds` : countText(windowSeconds / 3600, "hour");
  return new GatewayError(
    code,
    `More than ${countText(limit, "request")} came within ${span} ` +
      (isOfKey
        ? "(the key's rate_limit). Wait and send fewer, or raise it with PATCH /keys/{hash}."
        : `(tier ${tier}). Wait and send fewer.`),
    {
      // The contract's figure for a window of 60 seconds. A window of hours reports when it has
      // room again.
      retryAfterSeconds,
      metadata: { tier, limit, window_seconds: windowSeconds },
    },
  );
}

/**
 * Returns the headers of the window that a request would count in, for answers that are given
 * before counting.
 */
export function describeWindow(counters: RateCounters, caller: Caller): Record<string, string> {
  return rateHeaders(
    caller.kind === "anonymous"
      ? anonymousTier
      : counters.tiers.tierFor(caller.workspace.plan, "account"),
  );
}

/** Receives all tokens that a request has used, once it is settled. */
export type TokensUsed = (total: number) => void;

type WindowedCaller = Pick<LlmKeyCaller, "key" | "parent" | "run" | "grandparent">;

/** Returns whether a key, or the key that created it, has a ceiling of tokens per minute. */
export const countsTokens = (caller: WindowedCaller): boolean => {
  const [own, parent] = windowKeysOf(caller);
  return own.tokensPerMinute !== null || (parent !== undefined && parent.tokensPerMinute !== null);
};

/**
 * Returns the tokens that a request is about to send and the ceilings of tokens per minute (`tpm`)
 * that count them, so that concurrent requests see each other; undefined for a key without one.
 */
export const tokenCountOf = (
  caller: WindowedCaller & Pick<LlmKeyCaller, "workspace">,
  estimateTokens: () => number,
): TokenCount | undefined =>
  countsTokens(caller) ? { windows: tokenWindowsOf(caller), tokens: estimateTokens() } : undefined;

/** Returns a function that counts the tokens beyond the estimate, once they are known. */
export const tokensUsedOf =
  ({ limiter }: Pick<RateCounters, "limiter">, { windows, tokens }: TokenCount): TokensUsed =>
  (total) => {
    for (const window of windows) limiter.addTokens(window, total - tokens);
  };

/**
 * Counts the tokens of a request that was counted before. Throws where a ceiling is reached. Where
 * processes share the windows, it returns a promise, and the ticket names the request to a hold that
 * is requested meanwhile.
 */
export function reserveTokens(
  { limiter }: Pick<RateCounters, "limiter">,
  count: TokenCount,
  ticket?: string,
): undefined | Promise<void> {
  const conclude = (full: TokenWindow | undefined): undefined => {
    if (full !== undefined) throw tooManyTokens(full);
  };
  const reserved = limiter.reserveTokens(count, ticket);
  return reserved instanceof Promise ? reserved.then(conclude) : conclude(reserved);
}

const tokenWindowsOf = (caller: WindowedCaller & Pick<LlmKeyCaller, "workspace">): TokenWindow[] =>
  windowKeysOf(caller).flatMap(({ id: keyId, tokensPerMinute: perMinute }) =>
    perMinute === null ? [] : [{ keyId, workspaceId: caller.workspace.id, perMinute }],
  );

const tooManyTokens = ({ perMinute }: TokenWindow): GatewayError =>
  new GatewayError(
    "rate_limit_exceeded",
    `This key may use ${countText(perMinute, "token")} within 60 seconds (its tpm). Wait, or send less.`,
    {
      retryAfterSeconds: 60,
      metadata: { limit: perMinute, unit: "tokens", window_seconds: 60 },
    },
  );

/**
 * A credential that is unknown, forged, revoked, disabled or expired. Every guess fails with it.
 */
export class RefusedCredentialError extends GatewayError {}

/**
 * Counts a request whose credential was refused, by its address and apart from anonymous requests.
 * Callers with valid credentials are never counted here, so another client behind the same address
 * cannot lock them out. Throws `ip_rate_limit_exceeded` beyond the window, or else the original
 * refusal.
 */
export async function countRefusedCredential(
  { limiter }: RateCounters,
  {
    refusal,
    address,
    headers,
  }: { refusal: RefusedCredentialError; address: string; headers: AnswerHeaders },
): Promise<never> {
  const counter = `refused ${countedAddress(address)}`;
  const { admitted, tier } = await limiter.count({
    minutes: [{ counter, tier: anonymousTier }],
    hours: undefined,
  });
  headers.share(rateHeaders(tier));
  if (admitted) throw refusal;
  throw new GatewayError(
    "ip_rate_limit_exceeded",
    `More than ${tier.perMinute} requests whose credentials are not valid came from your address within 60 seconds. ` +
      "Check the key that is sent, and wait; requests with a valid one are served meanwhile.",
    {
      retryAfterSeconds: 60,
      metadata: {
        tier: tier.id,
        limit: tier.perMinute,
        window_seconds: 60,
        reason: "invalid_credentials",
      },
    },
  );
}

const cache = new WeakMap<RateTier, Record<string, string>>();

/** Returns the rate-limit headers of a tier; the same object for the same tier. */
function rateHeaders(tier: RateTier): Record<string, string> {
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

/** Returns the headers of a quota that refused a request, which replace those of its tier. */
const exhaustedQuotaHeaders = (quota: Quota): Record<string, string> => capHeaders(quota);

/**
 * Returns the headers with the rest of a quota, which only windows of hours report (contract:
 * "Limits").
 */
function quotaHeaders({ remaining, resetSeconds }: QuotaState): Record<string, string> {
  const [left, reset] = [String(remaining), String(resetSeconds)];
  return {
    "x-ratelimit-remaining": left,
    "x-ratelimit-reset": reset,
    "ratelimit-remaining": left,
    "ratelimit-reset": reset,
  };
}
