import type { Clock } from "../platform/kernel/clock.ts";

/** Milliseconds between the starts of two lines while clients use the gateway. */
const paceMs = 20;

/** Milliseconds after which a gateway without requests of clients counts as unused. */
const quietMs = 1_000;

/** Milliseconds that the event loop may be late before a line waits for other requests. */
const lateMs = 10;

/**
 * Spaces the starts of lines while clients use the gateway. A line that waits for its provider costs
 * nothing, but its start and its end take a millisecond each, which requests of clients would wait
 * for. Fifty lines a second leave nine tenths of the time to them, however fast providers answer.
 */
export class LinePace {
  private clientsAtMs = Number.NEGATIVE_INFINITY;
  private nextMs = 0;

  constructor(
    private readonly clock: Pick<Clock, "monotonicMs">,
    private readonly requestsInProgress: () => number,
  ) {}

  /** Returns the milliseconds until a line may start: 0 starts one now. */
  take(): number {
    const nowMs = this.clock.monotonicMs();
    if (this.requestsInProgress() > 0) this.clientsAtMs = nowMs;
    if (nowMs - this.clientsAtMs > quietMs) return 0;
    if (nowMs < this.nextMs) return this.nextMs - nowMs;
    this.nextMs = nowMs + paceMs;
    return 0;
  }

  /** Waits while the event loop is late, so that lines give way to other requests. */
  async untilIdle(): Promise<void> {
    for (let tries = 0; tries < 20; tries += 1) {
      const askedMs = this.clock.monotonicMs();
      await new Promise((resolve) => void setImmediate(resolve));
      if (this.clock.monotonicMs() - askedMs < lateMs) return;
    }
  }
}
