import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import type { AutomaticTopUps } from "./automatic-top-ups.ts";
import type { PaidOrders } from "./paid-orders.ts";
import type { ReversalFollower } from "./reversal-follower.ts";
import type { Order } from "./orders.ts";
import { reversalRow, eventRow, type PaymentBooks, type EventOutcome } from "./payment-store.ts";
import {
  chargeSchema,
  reversalSchema,
  lastFailureOf,
  orderKey,
  paymentIntentSchema,
  sessionSchema,
  type StripeClient,
  type PaymentEvent,
  type ReversalKind,
  type Reversal,
  reversalStateOf,
} from "./stripe-client.ts";

/** The outcome of an event, and the order that it concerns. */
interface Verdict {
  outcome: EventOutcome;
  orderId: string | null;
}

const ignored: Verdict = { outcome: "ignored", orderId: null };
const misshapen: Verdict = { outcome: "refused_shape", orderId: null };

/** The dependencies of event handling. */
interface EventParts {
  books: PaymentBooks;
  commits: CommitQueue;
  paidOrders: PaidOrders;
  follower: ReversalFollower;
  automatic: AutomaticTopUps;
  stripe: StripeClient;
  /** Whether the key is for real money. Events of the other mode are ignored. */
  live: boolean;
  /** Called for events that match no order: money may have been paid without credits. */
  onRefused(event: PaymentEvent, outcome: EventOutcome): void;
}

/** Handles Stripe's events, in any order and with any number of repetitions. */
export class PaymentEvents {
  private readonly handlers: Readonly<Record<string, (event: PaymentEvent) => Promise<Verdict>>>;

  constructor(private readonly parts: EventParts) {
    const session = (event: PaymentEvent): Promise<Verdict> => this.session(event);
    const payment = (event: PaymentEvent): Promise<Verdict> => this.payment(event);
    const refund = (event: PaymentEvent): Promise<Verdict> => this.reversal(event, "refund");
    const dispute = (event: PaymentEvent): Promise<Verdict> => this.reversal(event, "dispute");
    this.handlers = {
      "checkout.session.completed": session,
      "checkout.session.async_payment_succeeded": session,
      "checkout.session.async_payment_failed": session,
      "checkout.session.expired": session,
      "payment_intent.succeeded": payment,
      "payment_intent.payment_failed": payment,
      "payment_intent.canceled": payment,
      "refund.created": refund,
      "refund.updated": refund,
      "refund.failed": refund,
      "charge.refund.updated": refund,
      "charge.refunded": (event) => this.chargeRefunded(event),
      "charge.dispute.created": dispute,
      "charge.dispute.updated": dispute,
      "charge.dispute.closed": dispute,
      "charge.dispute.funds_withdrawn": dispute,
      "charge.dispute.funds_reinstated": dispute,
    };
  }

  /** The types of events that are handled. */
  get types(): string[] {
    return Object.keys(this.handlers);
  }

  /** Handles an event. Rejects where that failed, so that the provider sends the event again. */
  async receive(event: PaymentEvent): Promise<EventOutcome> {
    const handle = Object.hasOwn(this.handlers, event.type) ? this.handlers[event.type] : undefined;
    if (handle === undefined || event.connectedAccount !== undefined) return "ignored";
    if (event.live !== this.parts.live) return "refused_mode";
    if (await this.parts.books.store.hasEvent(event.id)) return "already";
    const { outcome, orderId } = await handle(event);
    if (outcome.startsWith("refused")) this.parts.onRefused(event, outcome);
    // A credited event was written together with its credits, and an ignored one is not kept.
    if (outcome !== "ignored" && outcome !== "credited")
      await this.note(event, { outcome, orderId });
    return outcome;
  }

  private async session(event: PaymentEvent): Promise<Verdict> {
    const { orders } = this.parts.books;
    const { data: session } = sessionSchema.safeParse(event.object);
    if (session === undefined) return misshapen;
    const order = await orders.find(
      session.client_reference_id ?? session.metadata[orderKey] ?? "",
    );
    if (order === undefined) return ignored;
    const verdict = (outcome: EventOutcome): Verdict => ({ outcome, orderId: order.id });
    if (order.kind !== "checkout" || (order.sessionId !== null && order.sessionId !== session.id))
      return verdict("refused_session");
    if (
      event.type === "checkout.session.expired" ||
      event.type === "checkout.session.async_payment_failed"
    ) {
      const state = event.type === "checkout.session.expired" ? "expired" : "failed";
      return verdict(
        (await orders.end(order.id, {
          state,
          failure: state === "failed" ? "payment_failed" : null,
        }))
          ? "noted"
          : "already",
      );
    }
    // A payment by a slow method is still in progress: another event reports how it ended.
    if (session.payment_status !== "paid") return verdict("noted");
    if (session.payment_intent === undefined) return verdict("refused_shape");
    return verdict(
      await this.parts.paidOrders.settle(order, {
        paymentIntentId: session.payment_intent,
        amountCents: session.amount_total ?? undefined,
        currency: session.currency ?? undefined,
        customerId: session.customer,
        event,
      }),
    );
  }

  private async payment(event: PaymentEvent): Promise<Verdict> {
    const { data: payment } = paymentIntentSchema.safeParse(event.object);
    if (payment === undefined) return misshapen;
    const order = await this.parts.books.orders.find(payment.metadata[orderKey] ?? "");
    if (order === undefined) return ignored;
    if (event.type !== "payment_intent.succeeded")
      return { outcome: await this.failed(order, lastFailureOf(payment)), orderId: order.id };
    const outcome = await this.parts.paidOrders.settle(order, {
      paymentIntentId: payment.id,
      amountCents: payment.amount_received ?? payment.amount,
      currency: payment.currency,
      customerId: payment.customer,
      event,
    });
    return { outcome, orderId: order.id };
  }

  /**
   * Handles a failed payment. At a checkout the payer may try another card; for an automatic top-up
   * no person is present to do so.
   */
  private async failed(order: Order, reason: string): Promise<EventOutcome> {
    if (order.kind !== "automatic") return "noted";
    return (await this.parts.automatic.fail(order, reason)) ? "noted" : "already";
  }

  private async reversal(event: PaymentEvent, kind: ReversalKind): Promise<Verdict> {
    const { data } = reversalSchema.safeParse(event.object);
    if (data === undefined) return misshapen;
    const { id, payment_intent: paymentIntentId, amount: amountCents, currency, status } = data;
    const state = reversalStateOf(kind, status ?? "");
    if (paymentIntentId === undefined || state === undefined) return ignored;
    if (currency.toLowerCase() !== this.parts.books.settings.currency)
      return { outcome: "refused_currency", orderId: null };
    return this.keep({ id, kind, state, paymentIntentId, amountCents });
  }

  /**
   * Handles a refunded charge. The event reports a sum and not the individual refunds, so those are
   * requested.
   */
  private async chargeRefunded(event: PaymentEvent): Promise<Verdict> {
    const { data: charge } = chargeSchema.safeParse(event.object);
    if (charge?.payment_intent === undefined) return misshapen;
    const receipt = await this.parts.books.store.receiptOf(charge.payment_intent);
    if (receipt === undefined) return ignored;
    for (const refund of await this.parts.stripe.refundsOf(charge.payment_intent)) {
      const state = reversalStateOf("refund", refund.status ?? "");
      if (state === undefined) continue;
      await this.keep({
        id: refund.id,
        kind: "refund",
        state,
        paymentIntentId: charge.payment_intent,
        amountCents: refund.amount,
      });
    }
    return { outcome: "noted", orderId: receipt.orderId };
  }

  /**
   * Records a reversal, and adjusts the balance where its payment was credited. Where the payment
   * is credited later, the balance follows then.
   */
  private async keep(reversal: Reversal): Promise<Verdict> {
    const { commits, books, follower } = this.parts;
    const isNew = !(await books.store.hasReversal(reversal));
    if (isNew)
      await unlessThere(
        commits.commit({ inserts: [reversalRow(reversal, books.clock.nowMs())], adds: [] }),
      );
    const receipt = await books.store.receiptOf(reversal.paymentIntentId);
    if (receipt !== undefined) await follower.follow(receipt.workspaceId);
    return { outcome: isNew ? "noted" : "already", orderId: receipt?.orderId ?? null };
  }

  private note(event: PaymentEvent, { outcome, orderId }: Verdict): Promise<void> {
    const atMs = this.parts.books.clock.nowMs();
    return unlessThere(
      this.parts.commits.commit({
        inserts: [eventRow(event, { orderId, outcome, atMs })],
        adds: [],
      }),
    );
  }
}

/** Writes a row, unless another gateway has written it meanwhile. */
const unlessThere = (commit: Promise<void>): Promise<void> =>
  commit.catch((error: unknown) => {
    if (!isUniqueViolation(error)) throw error;
  });
