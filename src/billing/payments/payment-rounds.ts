import { minuteMs } from "../../platform/kernel/clock.ts";
import { withinTime } from "../../platform/kernel/time/within-time.ts";

/** Milliseconds between checks of saved cards and of what is owed. */
const roundMs = minuteMs / 2;

/** The number of rounds between reconciliations with Stripe. */
const reconcileRounds = 20;

/**
 * Milliseconds that a stop waits for a round. What it cuts off, such as a charge, is found again
 * after the next start.
 */
const patienceMs = 5_000;

/** A part of payments with work of its own. */
interface Runner {
  run(): Promise<void>;
}

/**
 * The periodic work of payments: follows reversals, charges saved cards, and asks Stripe for what
 * no webhook reported.
 */
export class PaymentRounds {
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> | undefined;
  private count = 0;

  constructor(
    private readonly options: {
      follower: Runner;
      automatic: Runner;
      reconciliation: Runner;
      onError(error: unknown): void;
      /** Called when a reconciliation has ended. */
      onReconciled(ok: boolean): void;
    },
  ) {}

  /**
   * Runs now, to finish what a crash cut off, and then every half minute. A round that takes longer
   * delays the next.
   */
  start(): void {
    const next = (): void => {
      this.running ??= this.run(this.count++ % reconcileRounds === 0).finally(
        () => (this.running = undefined),
      );
    };
    next();
    this.timer = setInterval(next, roundMs);
  }

  /** Stops; resolves when a round in progress has ended, or takes too long. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    if (this.running !== undefined) await withinTime(patienceMs, this.running, undefined);
  }

  /** Runs one round. Failures go to `onError` and are tried again in the next round. */
  async run(reconciling: boolean): Promise<void> {
    const { follower, automatic, reconciliation, onError, onReconciled } = this.options;
    await follower.run().catch(onError);
    await automatic.run().catch(onError);
    if (!reconciling) return;
    await reconciliation.run().then(
      () => onReconciled(true),
      (error: unknown) => {
        onReconciled(false);
        onError(error);
      },
    );
  }
}
