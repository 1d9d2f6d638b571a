/** The parameters of the retry budget; docs/health.md lists the same. */
export const retryBudgetLimits = {
  /**
   * The fallbacks that a provider may fail in a row before it gets no more: ten seconds' worth of
   * `perSecond`, as in Finagle's retry budgets, so that a single client that tests a provider never
   * reaches it.
   */
  atOnce: 100,
  /**
   * Tokens per second that return by themselves, so that a provider that is never asked first is
   * tried again.
   */
  perSecond: 10,
} as const;

const tokensMax: number = retryBudgetLimits.atOnce;
const tokensPerMs = retryBudgetLimits.perSecond / 1_000;

/**
 * Limits the fallbacks to a provider, so that they do not multiply an outage. The first attempt of
 * a request is always made; fallbacks go only to providers that have tokens left. Each failure,
 * also of a first attempt, takes one token, and each answer returns one: a provider that answers
 * every second request keeps its budget, and one that fails more often gets ten fallbacks per
 * second. Attempts that were in flight when the last token was taken also take theirs when they
 * fail, so that many concurrent requests get only a few in excess.
 */
export class RetryBudget {
  private tokens = tokensMax;
  private countedMs: number;

  constructor(nowMs: number) {
    this.countedMs = nowMs;
  }

  /** Returns whether a request that failed at another provider may be tried at this one. */
  mayRetry(nowMs: number): boolean {
    this.refill(nowMs);
    return this.tokens >= 1;
  }

  count(nowMs: number, failed: boolean): void {
    this.refill(nowMs);
    this.tokens = failed
      ? Math.max(-tokensMax, this.tokens - 1)
      : Math.min(tokensMax, this.tokens + 1);
  }

  private refill(nowMs: number): void {
    this.tokens = Math.min(
      tokensMax,
      this.tokens + Math.max(0, nowMs - this.countedMs) * tokensPerMs,
    );
    this.countedMs = nowMs;
  }
}
