import { minuteMs } from "../../platform/lib/clock.ts";
import { withinTime } from "../../platform/lib/within-time.ts";

/** How often saved cards and what is owed are looked after. */
const roundMs = minuteMs / 2;

/** Every so many rounds Stripe is asked what no webhook told. */
const reconcileRounds = 20;

/** How long a stop waits for a round; what it cuts off, such as a charge, is found again after the next start. */
const patienceMs = 5_000;

/** A part of payments that has work of its own. */
interface Runner {
  run(): Promise<void>;
}

/** What payments do by themselves: follow claims, charge saved cards, and ask Stripe what no webhook told. */
export class PaymentRounds {
  private readonly options: {
    follower: Runner;
    automatic: Runner;
    reconciliation: Runner;
    onError(error: unknown): void;
    /** Told when a run of the reconciliation has ended. */
    onReconciled(ok: boolean): void;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> | undefined;
  private count = 0;

  constructor(options: PaymentRounds["options"]) {
    this.options = options;
  }

  /** Runs now, for the sake of what a crash cut off, and every half minute; a round that takes longer delays the next. */
  start(): void {
    const next = (): void => {
      this.running ??= this.run(this.count++ % reconcileRounds === 0).finally(
        () => (this.running = undefined),
      );
    };
    next();
    this.timer = setInterval(next, roundMs);
  }

  /** Resolves when a round that is under way has ended, or takes too long. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    if (this.running !== undefined) await withinTime(patienceMs, this.running, undefined);
  }

  /** One round. What fails goes to `onError`, and is tried again in the next. */
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
