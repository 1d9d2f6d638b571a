import { FakeMeters } from "./fake-meters.ts";
/** An object of Stripe's API, as far as the tests need it. */
export type StripeObject = Record<string, unknown> & { id: string };

/** An event in the form that Stripe sends. */
export interface StripeEvent {
  id: string;
  object: "event";
  type: string;
  created: number;
  livemode: boolean;
  account?: string;
  data: { object: StripeObject };
}

/**
 * The state of a simulated Stripe and its events: people pay, and banks demand their money back.
 */
export class StripeWorld {
  readonly customers = new Map<string, StripeObject>();
  readonly sessions = new Map<string, StripeObject>();
  readonly payments = new Map<string, StripeObject>();
  readonly refunds = new Map<string, StripeObject>();
  readonly disputes = new Map<string, StripeObject>();
  /** All events, the oldest first. */
  readonly events: StripeEvent[] = [];
  /** Customers with a saved card. */
  readonly cards = new Set<string>();
  readonly meters: FakeMeters;
  private readonly nowMs: () => number;
  private count = 0;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
    this.meters = new FakeMeters(nowMs);
  }

  /** Returns a new id with this prefix. */
  id(prefix: string): string {
    return `${prefix}_test_${String(++this.count).padStart(5, "0")}`;
  }

  /** Pays at a checkout. Returns the events, in the order in which they happen. */
  pay(sessionId: string): StripeEvent[] {
    const session = found(this.sessions, sessionId);
    const payment = this.addPayment(
      {
        amount: session["amount_total"],
        currency: session["currency"],
        customer: session["customer"],
        metadata: session["metadata"],
      },
      "succeeded",
    );
    Object.assign(session, {
      payment_status: "paid",
      status: "complete",
      payment_intent: payment.id,
    });
    if (session["saves_card"]) this.cards.add(String(session["customer"]));
    return [
      this.happen("payment_intent.succeeded", payment),
      this.happen("checkout.session.completed", session),
    ];
  }

  /** Expires a checkout. */
  expire(sessionId: string): StripeEvent {
    const session = found(this.sessions, sessionId);
    session["status"] = "expired";
    return this.happen("checkout.session.expired", session);
  }

  addPayment(fields: Record<string, unknown>, status: string): StripeObject {
    const id = this.id("pi");
    const payment = {
      ...fields,
      id,
      object: "payment_intent",
      status,
      amount_received: status === "succeeded" ? fields["amount"] : 0,
      created: this.seconds(),
    };
    this.payments.set(id, payment);
    return payment;
  }

  /** Refunds a payment, or a part of it. */
  refund(paymentId: string, amount: number): StripeEvent[] {
    const payment = found(this.payments, paymentId);
    const refund = {
      id: this.id("re"),
      object: "refund",
      amount,
      currency: payment["currency"],
      status: "succeeded",
      payment_intent: paymentId,
    };
    this.refunds.set(refund.id, refund);
    const charge = {
      id: `ch_of_${paymentId}`,
      object: "charge",
      payment_intent: paymentId,
      amount_refunded: amount,
    };
    return [this.happen("refund.created", refund), this.happen("charge.refunded", charge)];
  }

  failRefund(refundId: string): StripeEvent {
    const refund = found(this.refunds, refundId);
    refund["status"] = "failed";
    return this.happen("refund.failed", refund);
  }

  /** Opens a dispute about a payment, or an inquiry that precedes one. */
  dispute(
    paymentId: string,
    { amount, status = "needs_response" }: { amount: number; status?: string },
  ): StripeEvent {
    const currency = found(this.payments, paymentId)["currency"];
    const dispute = {
      id: this.id("dp"),
      object: "dispute",
      amount,
      currency,
      status,
      payment_intent: paymentId,
    };
    this.disputes.set(dispute.id, dispute);
    return this.happen("charge.dispute.created", dispute);
  }

  moveDispute(disputeId: string, status: string): StripeEvent {
    const dispute = found(this.disputes, disputeId);
    dispute["status"] = status;
    return this.happen(
      status === "won" || status === "lost" ? "charge.dispute.closed" : "charge.dispute.updated",
      dispute,
    );
  }

  /** Records an event with a copy of its object, which later changes do not affect. */
  happen(type: string, object: StripeObject): StripeEvent {
    const event: StripeEvent = {
      id: this.id("evt"),
      object: "event",
      type,
      created: this.seconds(),
      livemode: false,
      data: { object: structuredClone(object) },
    };
    this.events.push(event);
    return event;
  }

  private seconds(): number {
    return Math.floor(this.nowMs() / 1000);
  }
}

/** Returns the object with this id; the test fails where there is none. */
export function found(objects: ReadonlyMap<string, StripeObject>, id: string): StripeObject {
  const object = objects.get(id);
  if (object === undefined) throw new Error(`the simulated Stripe has no ${id}`);
  return object;
}
