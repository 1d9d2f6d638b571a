import type { RollingDistribution } from "./rolling-distribution.ts";

/** A percentile's share of requests, such as 0.9, and the bound that it has to keep. */
export interface Cutoff {
  share: number;
  bound: number;
}

/** What is known of a route's speed at one moment. */
export class RouteMeasures {
  private readonly latency: RollingDistribution | undefined;
  private readonly throughput: RollingDistribution | undefined;
  private readonly nowMs: number;

  constructor(known: {
    firstTokenMs: RollingDistribution | undefined;
    tokensPerSecond: RollingDistribution | undefined;
    nowMs: number;
  }) {
    this.latency = known.firstTokenMs;
    this.throughput = known.tokensPerSecond;
    this.nowMs = known.nowMs;
  }

  /** Milliseconds within which a share of the answers began; undefined when nothing is known. */
  firstTokenMs(share: number): number | undefined {
    return this.latency?.at(share, this.nowMs);
  }

  /** Tokens a second that a share of the answers reached; undefined when nothing is known. */
  tokensPerSecond(share: number): number | undefined {
    return this.throughput?.at(1 - share, this.nowMs);
  }

  /** Whether a bound in milliseconds is kept; what is not known keeps every bound. */
  keepsLatency({ share, bound }: Cutoff): boolean {
    return this.latency?.isAtMost(bound, { share, nowMs: this.nowMs }) ?? true;
  }

  /** Whether a bound in tokens a second is kept; what is not known keeps every bound. */
  keepsThroughput({ share, bound }: Cutoff): boolean {
    return this.throughput?.isAtLeast(bound, { share, nowMs: this.nowMs }) ?? true;
  }
}
