import type { Order } from "./orders.ts";
import type { PaymentEvents } from "./payment-events.ts";
import type { PaymentBooks } from "./payment-store.ts";
import {
  orderKey,
  type StripeClient,
  type StripeSession,
  type PaymentEvent,
} from "./stripe-client.ts";
import { dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import type { PaidOrders } from "./paid-orders.ts";

/** Milliseconds after which an order's outcome is requested, because its webhook is overdue. */
const overdueMs = 10 * minuteMs;

/**
 * Milliseconds after which an order without a known checkout was never opened: Stripe ends
 * checkouts after a day.
 */
const forgottenMs = 25 * hourMs;

/**
 * Milliseconds before the last run from which events are read again, because Stripe lists them
 * somewhat after they happened.
 */
const overlapMs = hourMs;

/** Milliseconds that Stripe keeps events. */
const eventsKeptMs = 30 * dayMs;

const eventsMark = "events-read";

/**
 * Finds out from Stripe what no webhook reported: the outcome of open orders, and every event that
 * did not arrive.
 */
export class Reconciliation {
  constructor(
    private readonly options: {
      books: PaymentBooks;
      events: PaymentEvents;
      paidOrders: PaidOrders;
      stripe: StripeClient;
      live: boolean;
      onError(error: unknown): void;
    },
  ) {}

  /**
   * Requests everything that is overdue. Rejects where Stripe or the database did not answer; it is
   * tried again.
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

  /**
   * Returns the checkout of an order, also where a crash came between opening it and storing its
   * id.
   */
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
