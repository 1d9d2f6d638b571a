import { hourMs } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { balanceOf } from "../ledger/book/account-book.ts";
import { monthOf, type Month } from "../ledger/month.ts";
import { nanoFromCents, quoteOf } from "./cents.ts";
import type { PaidOrders } from "./paid-orders.ts";
import { PaymentError, type Buyer, type Order } from "./orders.ts";
import { auditRows, type PaymentBooks } from "./payment-store.ts";
import { lastFailureOf, orderKey, type StripeClient, type StripePayment } from "./stripe-client.ts";
import type { AutomaticStore, AutomaticTopUp } from "./automatic-store.ts";

/**
 * Milliseconds for which a charge may be requested again with its idempotency key. Stripe forgets
 * keys after a day.
 */
const repeatableMs = 23 * hourMs;

/** Dependencies of automatic top-ups. */
interface AutomaticParts {
  books: PaymentBooks;
  store: AutomaticStore;
  commits: CommitQueue;
  paidOrders: PaidOrders;
  stripe: StripeClient;
  live: boolean;
  /**
   * Serialises the top-ups of each workspace. It is not the mutex of the books, because Stripe is
   * awaited while it is held.
   */
  mutex: KeyedMutex;
  /** Returns who pays; undefined for a workspace that is deleted or blocked. */
  buyerOf(workspaceId: string): Buyer | undefined;
  onError(error: unknown): void;
}

/**
 * Charges saved cards as their workspaces agreed. An order is written before its card is charged,
 * so that it is found again after a crash. The database allows one open order for each workspace,
 * so there are never two at once.
 */
export class AutomaticTopUps {
  constructor(private readonly parts: AutomaticParts) {}

  /**
   * Checks every workspace. Failures go to `onError`, and the workspace is tried again on the next
   * run.
   */
  async run(): Promise<void> {
    const { books, store, live, onError } = this.parts;
    // Open orders come first, including those whose owners turned them off meanwhile: a card may
    // have been charged.
    for (const order of await books.orders.openAutomatic(live)) {
      await this.inTurn(order.workspaceId, () => this.finish(order)).catch(onError);
    }
    for (const topUp of await store.active(live))
      await this.inTurn(topUp.workspaceId, () => this.look(topUp)).catch(onError);
  }

  /** Returns the cents that a workspace's card was charged in a month, or may yet be. */
  async chargedIn({ workspaceId, month }: { workspaceId: string; month: Month }): Promise<number> {
    return chargedCents(await this.parts.books.orders.automaticIn({ workspaceId, month }));
  }

  /**
   * Ends an order that was not paid, and tries no other until a person agrees again. Returns
   * whether it was open.
   */
  async fail(order: Order, reason: string): Promise<boolean> {
    const { books, store, commits } = this.parts;
    const wasOpen = await books.orders.end(order.id, { state: "failed", failure: reason });
    if (!wasOpen) return false;
    const atMs = books.clock.nowMs();
    await store.stop(order.workspaceId, { atMs, reason });
    const { workspaceId, id: target } = order;
    await commits.commit({
      inserts: auditRows(
        { workspaceId, action: `automatic top-ups stopped: ${reason}`, target },
        atMs,
      ),
      adds: [],
    });
    return true;
  }

  private inTurn(workspaceId: string, work: () => Promise<void>): Promise<void> {
    return this.parts.mutex.run(workspaceId, work);
  }

  /** Tops a workspace up where its balance is low, as it agrees now: others may have taken minutes. */
  private async look({ workspaceId }: AutomaticTopUp): Promise<void> {
    const { store, live } = this.parts;
    const topUp = await store.findActive(workspaceId, live);
    if (topUp === undefined || !(await this.isLow(topUp))) return;
    const order = await this.newOrder(topUp);
    // Checked again now that the order has its number: another process that topped up since would
    // have taken it.
    if (order === undefined || !(await this.isLow(topUp))) return;
    try {
      await this.parts.books.orders.insert(order);
    } catch (error) {
      if (isUniqueViolation(error)) return;
      throw error;
    }
    await this.charge(order);
  }

  private async isLow({ workspaceId, thresholdCents }: AutomaticTopUp): Promise<boolean> {
    const { ledger } = this.parts.books;
    await ledger.refresh(workspaceId);
    return balanceOf(ledger.book.workspace(workspaceId)) < nanoFromCents(thresholdCents);
  }

  /**
   * Creates the next order; undefined where one is open, or where the month's ceiling or the
   * workspace's state allows none.
   */
  private async newOrder({
    workspaceId,
    creditCents,
    monthlyMaxCents,
    card,
  }: AutomaticTopUp): Promise<Order | undefined> {
    const { books, live, buyerOf } = this.parts;
    const { orders, settings, clock } = books;
    const nowMs = clock.nowMs();
    const month = monthOf(nowMs);
    const quote = quoteOf(creditCents, settings.fee);
    const buyer = buyerOf(workspaceId);
    const customerId = await orders.customerOf({ workspaceId, live });
    const ordered = await orders.automaticIn({ workspaceId, month });
    if (
      buyer === undefined ||
      customerId === undefined ||
      ordered.some(({ state }) => state === "open")
    )
      return undefined;
    if (chargedCents(ordered) + quote.chargeCents > monthlyMaxCents) return undefined;
    return {
      ...quote,
      id: newId("top", nowMs),
      workspaceId,
      live,
      kind: "automatic",
      state: "open",
      failure: null,
      createdAtMs: nowMs,
      createdBy: "automatic",
      buyer,
      currency: settings.currency,
      customerId,
      paymentMethodId: card.id,
      sessionId: null,
      paymentIntentId: null,
      month: { name: month, sequence: ordered.length + 1 },
    };
  }

  private async charge(order: Order): Promise<void> {
    try {
      await this.take(order, await this.parts.stripe.charge(order));
    } catch (error) {
      if (!(error instanceof PaymentError)) throw error;
      // An order with an unknown outcome stays open, and its outcome is requested on the next run.
      if (error.kind === "unknown") return this.parts.onError(error);
      await this.fail(order, error.message);
    }
  }

  /** Finds the outcome of an order that was left open. */
  private async finish({ id }: Order): Promise<void> {
    const { books, stripe } = this.parts;
    const order = await books.orders.find(id);
    if (order === undefined || order.state !== "open") return;
    const made = (await stripe.paymentsOf(order.customerId)).filter(
      ({ metadata }) => metadata[orderKey] === order.id,
    );
    const payment = made.find(({ status }) => status === "succeeded") ?? made[0];
    if (payment !== undefined) return this.take(order, payment);
    if (books.clock.nowMs() - order.createdAtMs < repeatableMs) return this.charge(order);
    await this.fail(order, "no_answer");
  }

  private async take(order: Order, payment: StripePayment): Promise<void> {
    if (payment.status === "processing") return;
    // Where a bank asks for the cardholder, the payment fails: no person is present at a checkout.
    if (payment.status !== "succeeded")
      return void (await this.fail(order, lastFailureOf(payment)));
    const outcome = await this.parts.paidOrders.settle(order, {
      paymentIntentId: payment.id,
      amountCents: payment.amount_received ?? payment.amount,
      currency: payment.currency,
      customerId: payment.customer,
      event: undefined,
    });
    if (outcome.startsWith("refused")) await this.fail(order, outcome);
  }
}

/** Returns the sum of what orders charge, or may yet charge, in cents. */
const chargedCents = (orders: readonly Order[]): number =>
  orders
    .filter(({ state }) => state === "open" || state === "paid")
    .reduce((sum, { chargeCents }) => sum + chargeCents, 0);
