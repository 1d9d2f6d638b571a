import { dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import { withinTime } from "../../platform/kernel/within-time.ts";
import type { PaidOrders } from "./checkouts.ts";
import type { Order } from "./orders.ts";
import type { PaymentEvent, PaymentEvents } from "./payment-events.ts";
import type { PaymentBooks } from "./payment-store.ts";
import { orderKey, type StripeClient, type StripeSession } from "./stripe-client.ts";

/** Orders are asked about once their webhook is overdue. */
const overdueMs = 10 * minuteMs;

/**
 * An order whose checkout is still unknown after this was never opened: Stripe ends checkouts after
 * a day.
 */
const forgottenMs = 25 * hourMs;

/**
 * Events are read again from a little before the last time: they are listed somewhat after they
 * happened.
 */
const overlapMs = hourMs;

/** How long Stripe keeps events. */
const eventsKeptMs = 30 * dayMs;

const eventsMark = "events-read";

/**
 * Finds out from Stripe what no webhook told: how open orders ended, and every event that did not
 * arrive.
 */
export class Reconciliation {
  private readonly options: {
    books: PaymentBooks;
    events: PaymentEvents;
    paidOrders: PaidOrders;
    stripe: StripeClient;
    live: boolean;
    onError(error: unknown): void;
  };

  constructor(options: Reconciliation["options"]) {
    this.options = options;
  }

  /**
   * Asks about everything that is overdue. Rejects where Stripe or the database did not answer; it
   * is tried again.
   */
  async run(): Promise<void> {
    const { books, live, onError } = this.options;
    for (const order of await books.orders.openCheckouts(live)) {
      if (books.clock.nowMs() - order.createdAtMs >= overdueMs)
        await this.ask(order).catch(onError);
    }
    await this.readEvents();
  }

  private async ask(order: Order): Promise<void> {
    const { books, stripe, paidOrders } = this.options;
    const session = await this.sessionOf(order);
    if (session === undefined) {
      if (books.clock.nowMs() - order.createdAtMs >= forgottenMs)
        await books.orders.end(order.id, { state: "expired", failure: null });
      return;
    }
    if (session.payment_status === "paid" && session.payment_intent !== undefined) {
      const payment = await stripe.payment(session.payment_intent);
      await paidOrders.settle(order, {
        paymentIntentId: payment.id,
        amountCents: payment.amount_received ?? payment.amount,
        currency: payment.currency,
        customerId: payment.customer,
        event: undefined,
      });
    } else if (session.status === "expired")
      await books.orders.end(order.id, { state: "expired", failure: null });
  }

  /** A crash may have come between the checkout and its id in the order. */
  private async sessionOf({
    id,
    sessionId,
    customerId,
  }: Order): Promise<StripeSession | undefined> {
    const { stripe } = this.options;
    if (sessionId !== null) return stripe.session(sessionId);
    const sessions = await stripe.sessionsOf(customerId);
    return sessions.find(
      ({ client_reference_id: orderId, metadata }) => (orderId ?? metadata[orderKey]) === id,
    );
  }

  private async readEvents(): Promise<void> {
    const { books, events, stripe } = this.options;
    const oldestMs = await books.orders.oldestMs();
    if (oldestMs === undefined) return;
    const nowMs = books.clock.nowMs();
    const fromMs = Math.max(
      ((await books.store.mark(eventsMark)) ?? oldestMs) - overlapMs,
      nowMs - eventsKeptMs,
    );
    const missed: PaymentEvent[] = [];
    for await (const event of stripe.eventsSince(fromMs, events.types)) missed.push(event);
    for (const event of missed.reverse()) await events.receive(event);
    await books.store.setMark(eventsMark, nowMs);
  }
}

/** How often saved cards and what is owed are looked after. */
const roundMs = minuteMs / 2;

/** Every so many rounds Stripe is asked what no webhook told. */
const reconcileRounds = 20;

/**
 * How long a stop waits for a round; what it cuts off, such as a charge, is found again after the
 * next start.
 */
const patienceMs = 5_000;

/** A part of payments that has work of its own. */
interface Runner {
  run(): Promise<void>;
}

/**
 * What payments do by themselves: follow claims, charge saved cards, and ask Stripe what no webhook
 * told.
 */
export class PaymentRounds {
  private readonly options: {
    follower: Runner;
    automatic: Runner;
    reconciliation: Runner;
    onError(error: unknown): void;
    /** Called when a run of the reconciliation has ended. */
    onReconciled(ok: boolean): void;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> | undefined;
  private count = 0;

  constructor(options: PaymentRounds["options"]) {
    this.options = options;
  }

  /**
   * Runs now, for the sake of what a crash cut off, and every half minute; a round that takes
   * longer delays the next.
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
