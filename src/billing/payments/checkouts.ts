import { newId } from "../../platform/kernel/ids.ts";
import type { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { quoteOf } from "./cents.ts";
import { PaymentError, type Buyer, type Order } from "./orders.ts";
import type { PaymentBooks } from "./payment-store.ts";
import type { StripeClient } from "./stripe-client.ts";

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
