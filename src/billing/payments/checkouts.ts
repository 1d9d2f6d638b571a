import { newId } from "../../platform/kernel/ids.ts";
import type { Turns } from "../../platform/kernel/keyed-mutex.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { nanoFromCents, quoteOf } from "./cents.ts";
import type { ClaimFollower } from "./claims.ts";
import { documentValues, seriesOf, type IssuedDocument } from "./document.ts";
import { creditTransferId, PaymentError, type Buyer, type Order } from "./orders.ts";
import type { EventOutcome, PaymentEvent } from "./payment-events.ts";
import {
  auditRows,
  documentInsert,
  eventRow,
  receiptInsert,
  type Insert,
  type PaymentBooks,
} from "./payment-store.ts";
import type { StripeClient } from "./stripe-client.ts";

/** A top-up that a person wants to pay for. */
interface CheckoutRequest {
  workspaceId: string;
  creditCents: number;
  buyer: Buyer;
  createdBy: string;
  /** The card may be charged again later, by automatic top-ups that are agreed to. */
  saveCard: boolean;
  /** Where the payer's browser goes afterwards. */
  returnUrl: string;
  cancelUrl: string;
}

/** Orders that are paid at Stripe's checkout. */
export class Checkouts {
  private readonly books: PaymentBooks;
  private readonly stripe: StripeClient;
  private readonly turns: Turns;
  private readonly live: boolean;

  constructor(options: { books: PaymentBooks; stripe: StripeClient; turns: Turns; live: boolean }) {
    this.books = options.books;
    this.stripe = options.stripe;
    this.turns = options.turns;
    this.live = options.live;
  }

  /** Opens a checkout; the order stands before Stripe hears of it. Throws `PaymentError`. */
  async open(request: CheckoutRequest): Promise<{ order: Order; url: string }> {
    const { orders, settings, clock } = this.books;
    const { workspaceId, creditCents, buyer, createdBy } = request;
    const customerId = await this.turns.run(workspaceId, () => this.customerOf(request));
    const nowMs = clock.nowMs();
    const order: Order = {
      ...quoteOf(creditCents, settings.fee),
      id: newId("top", nowMs),
      workspaceId,
      live: this.live,
      kind: "checkout",
      state: "open",
      failure: null,
      createdAtMs: nowMs,
      createdBy,
      buyer,
      currency: settings.currency,
      customerId,
      paymentMethodId: null,
      sessionId: null,
      paymentIntentId: null,
      month: null,
    };
    await orders.insert(order);
    try {
      const { id: sessionId, url } = await this.stripe.openCheckout(order, request);
      await orders.setSession(order.id, sessionId);
      return { order: { ...order, sessionId }, url };
    } catch (error) {
      const known = error instanceof PaymentError && error.kind !== "unknown";
      if (known) await orders.end(order.id, { state: "failed", failure: error.message });
      throw error;
    }
  }

  private async customerOf({ workspaceId, buyer }: CheckoutRequest): Promise<string> {
    const { orders, clock } = this.books;
    const { live } = this;
    const known = await orders.customerOf({ workspaceId, live });
    if (known !== undefined) return known;
    const customerId = await this.stripe.createCustomer({
      name: buyer.name,
      email: buyer.email,
      workspaceId,
    });
    await orders.keepCustomer({ workspaceId, live, customerId, createdAtMs: clock.nowMs() });
    return customerId;
  }
}

/** What the provider says was paid. */
interface Payment {
  paymentIntentId: string;
  amountCents: number | undefined;
  currency: string | undefined;
  customerId: string | undefined;
  /** What told of it; undefined where it was asked for. */
  event: PaymentEvent | undefined;
}

/** How often another process may be first with the number of an invoice. */
const numberTries = 5;

/** Credits orders that were paid, each once, however often and from wherever it is heard. */
export class PaidOrders {
  private readonly books: PaymentBooks;
  private readonly follower: ClaimFollower;
  private readonly onCredited: (() => void) | undefined;

  constructor(options: {
    books: PaymentBooks;
    follower: ClaimFollower;
    onCredited?: (() => void) | undefined;
  }) {
    this.books = options.books;
    this.follower = options.follower;
    this.onCredited = options.onCredited;
  }

  /**
   * Credits an order, unless the payment is not what was ordered. The credits count for the very
   * next request, and are durable once this resolves. Rejects when the database refused, and then
   * nothing was credited.
   */
  async settle(order: Order, payment: Payment): Promise<EventOutcome> {
    const mismatch = mismatchOf(order, payment);
    if (mismatch !== undefined) return mismatch;
    const outcome = await this.books.turns.run(
      "books",
      async () => (await this.standing(order, payment)) ?? (await this.credit(order, payment)),
    );
    if (outcome === "refused_second_payment") return outcome;
    await this.books.orders.setPaid(order.id, payment.paymentIntentId);
    await this.follower.follow(order.workspaceId);
    if (outcome === "credited") this.onCredited?.();
    return outcome;
  }

  /** What was made of the order or the payment before; undefined where nothing was. */
  private async standing(
    { id: orderId }: Order,
    { paymentIntentId }: Payment,
  ): Promise<EventOutcome | undefined> {
    const receipts = await this.books.store.receiptsOf({ orderId, paymentIntentId });
    if (receipts.length === 0) return undefined;
    return receipts.every(
      (receipt) => receipt.orderId === orderId && receipt.paymentIntentId === paymentIntentId,
    )
      ? "already"
      : "refused_second_payment";
  }

  private async credit(
    order: Order,
    payment: Payment,
    triesLeft = numberTries,
  ): Promise<EventOutcome> {
    const { ledger, store } = this.books;
    const number = await store.nextNumber(seriesOf("invoice", order));
    try {
      await ledger.credit({
        id: creditTransferId(order.id),
        workspaceId: order.workspaceId,
        bucket: "topup",
        kind: "topup",
        amountNano: nanoFromCents(order.creditCents),
        reference: payment.paymentIntentId,
        alongside: (atMs) => this.rows(order, { payment, number, atMs }),
      });
      return "credited";
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      const standing = await this.standing(order, payment);
      if (standing !== undefined) return standing;
      if (triesLeft === 0) throw error;
      return this.credit(order, payment, triesLeft - 1);
    }
  }

  /**
   * The receipt, the invoice, the event and the entry of the audit log stand together with the
   * credits, or none of them does.
   */
  private rows(
    order: Order,
    { payment, number, atMs }: { payment: Payment; number: number; atMs: number },
  ): Insert[] {
    const { workspaceId, creditCents, feeCents, currency, buyer } = order;
    const invoice: IssuedDocument = {
      series: seriesOf("invoice", order),
      number,
      orderId: order.id,
      reference: "",
      workspaceId,
      issuedAtMs: atMs,
      creditCents,
      feeCents,
      currency,
      seller: this.books.settings.seller,
      buyer,
    };
    return [
      { statement: receiptInsert, values: [payment.paymentIntentId, order.id, workspaceId, atMs] },
      { statement: documentInsert, values: documentValues(invoice) },
      ...(payment.event === undefined
        ? []
        : [eventRow(payment.event, { orderId: order.id, outcome: "credited", atMs })]),
      ...auditRows({ workspaceId, action: "top-up credited", target: order.id }, atMs),
    ];
  }
}

/** Why a payment is not what was ordered; undefined where it is. */
function mismatchOf(
  order: Order,
  { amountCents, currency, customerId }: Payment,
): EventOutcome | undefined {
  if (amountCents !== order.chargeCents) return "refused_amount";
  if (currency?.toLowerCase() !== order.currency) return "refused_currency";
  return customerId === order.customerId ? undefined : "refused_customer";
}
