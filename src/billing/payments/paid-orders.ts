import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { nanoFromCents } from "./cents.ts";
import type { ReversalFollower } from "./reversal-follower.ts";
import { seriesOf, creditTransferId, type IssuedDocument, type Order } from "./orders.ts";
import {
  auditRows,
  documentRow,
  eventRow,
  receiptInsert,
  type EventOutcome,
  type Insert,
  type PaymentBooks,
} from "./payment-store.ts";
import type { PaymentEvent } from "./stripe-client.ts";

/** A payment, as the provider reports it. */
interface Payment {
  paymentIntentId: string;
  amountCents: number | undefined;
  currency: string | undefined;
  customerId: string | undefined;
  /** The event that reported it; undefined where it was requested. */
  event: PaymentEvent | undefined;
}

/** The number of attempts to get an invoice number, which another process may take first. */
const numberTries = 5;

/**
 * Credits paid orders, each exactly once, however often and by whichever way the payment is
 * reported.
 */
export class PaidOrders {
  private readonly books: PaymentBooks;
  private readonly follower: ReversalFollower;
  private readonly onCredited: (() => void) | undefined;

  constructor(options: {
    books: PaymentBooks;
    follower: ReversalFollower;
    onCredited?: (() => void) | undefined;
  }) {
    this.books = options.books;
    this.follower = options.follower;
    this.onCredited = options.onCredited;
  }

  /**
   * Credits an order, unless the payment differs from what was ordered. The credits count for the
   * very next request, and are durable once this resolves. Rejects when the database refused, and
   * then nothing was credited.
   */
  async settle(order: Order, payment: Payment): Promise<EventOutcome> {
    const mismatch = mismatchOf(order, payment);
    if (mismatch !== undefined) return mismatch;
    const outcome = await this.books.mutex.run(
      "books",
      async () => (await this.standing(order, payment)) ?? (await this.credit(order, payment)),
    );
    if (outcome === "refused_second_payment") return outcome;
    await this.books.orders.setPaid(order.id, payment.paymentIntentId);
    await this.follower.follow(order.workspaceId);
    if (outcome === "credited") this.onCredited?.();
    return outcome;
  }

  /** Returns the earlier outcome for the order or the payment; undefined where there is none. */
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
   * Returns the rows of the receipt, the invoice, the event and the audit log, which are committed
   * with the credits, all or nothing.
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
      documentRow(invoice),
      ...(payment.event === undefined
        ? []
        : [eventRow(payment.event, { orderId: order.id, outcome: "credited", atMs })]),
      ...auditRows({ workspaceId, action: "top-up credited", target: order.id }, atMs),
    ];
  }
}

/** Returns why a payment differs from what was ordered; undefined where it matches. */
function mismatchOf(
  order: Order,
  { amountCents, currency, customerId }: Payment,
): EventOutcome | undefined {
  if (amountCents !== order.chargeCents) return "refused_amount";
  if (currency?.toLowerCase() !== order.currency) return "refused_currency";
  return customerId === order.customerId ? undefined : "refused_customer";
}
