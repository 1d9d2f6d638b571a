import { dayMs, hourMs, minuteMs } from "../../platform/lib/clock.ts";
import type { Order } from "./order.ts";
import type { PaidOrders } from "./paid-orders.ts";
import type { PaymentBooks } from "./payment-books.ts";
import type { PaymentEvent } from "./payment-event.ts";
import type { PaymentEvents } from "./payment-events.ts";
import type { StripeClient } from "./stripe-client.ts";
import { orderKey, type StripeSession } from "./stripe-objects.ts";

/** Orders are asked about once their webhook is overdue. */
const overdueMs = 10 * minuteMs;

/** An order whose checkout nobody knows of after this was never opened: Stripe ends checkouts after a day. */
const forgottenMs = 25 * hourMs;

/** Events are read again from a little before the last time: they are listed somewhat after they happened. */
const overlapMs = hourMs;

/** How long Stripe keeps events. */
const eventsKeptMs = 30 * dayMs;

const eventsMark = "events-read";

/** Finds out from Stripe what no webhook told: how open orders ended, and every event that did not arrive. */
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

  /** Asks about everything that is overdue. Rejects where Stripe or the database did not answer; it is tried again. */
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
