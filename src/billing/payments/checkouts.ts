import { newId } from "../../platform/kernel/ids.ts";
import type { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { nanoFromCents, quoteOf } from "./cents.ts";
import type { ReversalFollower } from "./reversals.ts";
import {
  documentValues,
  seriesOf,
  creditTransferId,
  PaymentError,
  type IssuedDocument,
  type Buyer,
  type Order,
} from "./orders.ts";
import type { EventOutcome, PaymentEvent, PaymentEvents } from "./payment-events.ts";
import {
  auditRows,
  documentInsert,
  eventRow,
  receiptInsert,
  type Insert,
  type PaymentBooks,
} from "./payment-store.ts";
import { orderKey, type StripeClient, type StripeSession } from "./stripe-client.ts";
import { dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import { withinTime } from "../../platform/kernel/within-time.ts";

/** A top-up that a person wants to pay for. */
interface CheckoutRequest {
  workspaceId: string;
  creditCents: number;
  buyer: Buyer;
  createdBy: string;
  /** Whether the card may be charged again later, by automatic top-ups that are agreed to. */
  saveCard: boolean;
  /** The URL to which the payer's browser returns afterwards. */
  returnUrl: string;
  cancelUrl: string;
}

/** Creates orders that are paid at Stripe's checkout. */
export class Checkouts {
  private readonly books: PaymentBooks;
  private readonly stripe: StripeClient;
  private readonly mutex: KeyedMutex;
  private readonly live: boolean;

  constructor(options: {
    books: PaymentBooks;
    stripe: StripeClient;
    mutex: KeyedMutex;
    live: boolean;
  }) {
    this.books = options.books;
    this.stripe = options.stripe;
    this.mutex = options.mutex;
    this.live = options.live;
  }

  /** Opens a checkout. The order is written before Stripe is called. Throws `PaymentError`. */
  async open(request: CheckoutRequest): Promise<{ order: Order; url: string }> {
    const { orders, settings, clock } = this.books;
    const { workspaceId, creditCents, buyer, createdBy } = request;
    const customerId = await this.mutex.run(workspaceId, () => this.customerOf(request));
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
      { statement: documentInsert, values: documentValues(invoice) },
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
  private readonly options: {
    follower: Runner;
    automatic: Runner;
    reconciliation: Runner;
    onError(error: unknown): void;
    /** Called when a reconciliation has ended. */
    onReconciled(ok: boolean): void;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> | undefined;
  private count = 0;

  constructor(options: PaymentRounds["options"]) {
    this.options = options;
  }

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
