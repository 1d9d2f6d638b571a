/** The numbers of the budget; docs/health.md shows the same. */
export const retryBudgetLimits = {
  /**
   * Fallbacks that a provider may fail at once before it gets no more of them: ten seconds' worth of what comes back
   * (as Finagle's retry budgets have it), so that single clients which are tried out never meet it.
   */
  atOnce: 100,
  /** What comes back by itself, so that a provider which nobody asks first is asked again. */
  perSecond: 10,
} as const;

const tokensMax: number = retryBudgetLimits.atOnce;
const tokensPerMs = retryBudgetLimits.perSecond / 1_000;

/**
 * How many fallbacks a provider may get, so that an outage is not multiplied: the first attempt of a request is always
 * made, the next ones only at providers with something left. Each failure, of a first attempt too, takes a token, and each
 * answer gives one back: whoever answers every second request keeps its budget, whoever fails more gets ten fallbacks a second.
 * What was under way when the last token went is owed when it fails, too, so that many requests at once get no more than a few.
 */
export class RetryBudget {
  private tokens = tokensMax;
  private countedMs: number;

  constructor(nowMs: number) {
    this.countedMs = nowMs;
  }

  /** Whether another provider's failure may be followed by an attempt here. */
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
