import Stripe from "stripe";
import { z } from "zod";
import type { PaymentSettings } from "./cents.ts";
import { PaymentError, type Order } from "./orders.ts";

/** Milliseconds that Stripe may take to answer. */
const timeoutMs = 20_000;

/** Seconds after which a signed event is taken for a replay: the value that Stripe proposes. */
const toleranceSeconds = 300;

/** The most entries that are read of one list: the wanted one is among the newest. */
const listMax = 100;

/** A card that was saved with an earlier payment. */
export interface SavedCard {
  id: string;
  /** A label such as `visa 4242`. */
  label: string;
}

/**
 * Sends requests to Stripe through its own library, which is loaded only where payments are on.
 * Each request throws `PaymentError`.
 */
export class StripeClient {
  private readonly stripe: Stripe;

  /** Uses `fetch`, independent of which of the library's builds the runtime picks. */
  constructor(secretKey: string, { apiBase }: Pick<PaymentSettings["stripe"], "apiBase">) {
    this.stripe = new Stripe(secretKey, {
      httpClient: Stripe.createFetchHttpClient(),
      timeout: timeoutMs,
      telemetry: false,
      // A repetition by the library carries the idempotency key of the first request. A test server
      // on loopback is not retried.
      maxNetworkRetries: apiBase === undefined ? 2 : 0,
      ...(apiBase === undefined ? {} : addressOf(apiBase)),
    });
  }

  /** Returns the event of a webhook; undefined where its signature is invalid or too old. */
  async verifiedEvent(
    body: string,
    { signature, secret, nowMs }: { signature: string; secret: string; nowMs: number },
  ): Promise<PaymentEvent | undefined> {
    try {
      // The synchronous form does not work with the crypto that the library uses on Bun.
      return eventFrom(
        await this.stripe.webhooks.constructEventAsync(
          body,
          signature,
          secret,
          toleranceSeconds,
          undefined,
          nowMs,
        ),
      );
    } catch (error) {
      if (
        error instanceof Stripe.errors.StripeSignatureVerificationError ||
        error instanceof SyntaxError
      )
        return undefined;
      throw error;
    }
  }

  async createCustomer({
    name,
    email,
    workspaceId,
  }: {
    name: string;
    email: string | undefined;
    workspaceId: string;
  }): Promise<string> {
    const customer = {
      name,
      metadata: { switchyard_workspace: workspaceId },
      ...(email === undefined ? {} : { email }),
    };
    return (await asked(this.stripe.customers.create(customer))).id;
  }

  /** Opens the page on which an order is paid. The same order opens the same page again. */
  async openCheckout(
    order: Order,
    to: { returnUrl: string; cancelUrl: string; saveCard: boolean },
  ): Promise<{ id: string; url: string }> {
    const line = (name: string, cents: number) => ({
      quantity: 1,
      price_data: { currency: order.currency, unit_amount: cents, product_data: { name } },
    });
    const metadata = { [orderKey]: order.id };
    const session = await asked(
      this.stripe.checkout.sessions.create(
        {
          mode: "payment",
          customer: order.customerId,
          client_reference_id: order.id,
          metadata,
          line_items: [
            line("Credits", order.creditCents),
            ...(order.feeCents === 0 ? [] : [line("Processing fee", order.feeCents)]),
          ],
          payment_intent_data: {
            metadata,
            description: `Credits ${order.id}`,
            ...(to.saveCard ? { setup_future_usage: "off_session" } : {}),
          },
          // An order is paid in its own currency, because amounts have to match.
          adaptive_pricing: { enabled: false },
          success_url: to.returnUrl,
          cancel_url: to.cancelUrl,
        },
        { idempotencyKey: order.id },
      ),
    );
    if (session.url === null) throw new PaymentError("refused", "no_checkout_url");
    return { id: session.id, url: session.url };
  }

  async session(id: string): Promise<StripeSession> {
    return sessionSchema.parse(await asked(this.stripe.checkout.sessions.retrieve(id)));
  }

  async sessionsOf(customerId: string): Promise<StripeSession[]> {
    const { data } = await asked(
      this.stripe.checkout.sessions.list({ customer: customerId, limit: listMax }),
    );
    return data.map((session) => sessionSchema.parse(session));
  }

  /**
   * Charges an automatic order to its saved card. The same order is charged once, however often
   * this is called.
   */
  async charge(order: Order): Promise<StripePayment> {
    return paymentIntentSchema.parse(
      await asked(
        this.stripe.paymentIntents.create(
          {
            amount: order.chargeCents,
            currency: order.currency,
            customer: order.customerId,
            payment_method: order.paymentMethodId ?? "",
            off_session: true,
            confirm: true,
            automatic_payment_methods: { enabled: true, allow_redirects: "never" },
            metadata: { [orderKey]: order.id },
            description: `Automatic top-up ${order.id}`,
          },
          { idempotencyKey: order.id },
        ),
      ),
    );
  }

  async payment(id: string): Promise<StripePayment> {
    return paymentIntentSchema.parse(await asked(this.stripe.paymentIntents.retrieve(id)));
  }

  async paymentsOf(customerId: string): Promise<StripePayment[]> {
    const { data } = await asked(
      this.stripe.paymentIntents.list({ customer: customerId, limit: listMax }),
    );
    return data.map((payment) => paymentIntentSchema.parse(payment));
  }

  async refundsOf(paymentIntentId: string): Promise<StripeReversal[]> {
    const { data } = await asked(
      this.stripe.refunds.list({ payment_intent: paymentIntentId, limit: listMax }),
    );
    return data.map((refund) => reversalSchema.parse(refund));
  }

  /** Returns the card that a customer saved last; undefined where there is none. */
  async cardOf(customerId: string): Promise<SavedCard | undefined> {
    const {
      data: [method],
    } = await asked(
      this.stripe.customers.listPaymentMethods(customerId, { type: "card", limit: 1 }),
    );
    return (
      method && {
        id: method.id,
        label: `${method.card?.brand ?? "card"} ${method.card?.last4 ?? ""}`.trim(),
      }
    );
  }

  /**
   * Reports an event to a meter. Resolves also where Stripe has the event already: it then answers
   * 400 without a code, and says so in its message (seen 2026-08).
   */
  async reportUse({
    id,
    eventName,
    stripeCustomerId,
    units,
    atMs,
  }: {
    id: string;
    eventName: string;
    stripeCustomerId: string;
    units: number;
    atMs: number;
  }): Promise<void> {
    const event = this.stripe.billing.meterEvents.create(
      {
        event_name: eventName,
        identifier: id,
        timestamp: Math.floor(atMs / 1000),
        payload: { stripe_customer_id: stripeCustomerId, value: String(units) },
      },
      { idempotencyKey: id },
    );
    await asked(
      event.catch((error: unknown) => {
        if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error;
        if (/event already exists with identifier/i.test(error.message)) return;
        throw new PaymentError("refused", error.message, error.requestId);
      }),
    );
  }

  /**
   * Yields events of these types since a wall time, newest first. Stripe keeps them for 30 days.
   */
  async *eventsSince(sinceMs: number, types: string[]): AsyncGenerator<PaymentEvent> {
    const found = this.stripe.events
      .list({ created: { gte: Math.floor(sinceMs / 1000) }, types, limit: listMax })
      [Symbol.asyncIterator]();
    for (let next = await asked(found.next()); next.done !== true; next = await asked(found.next()))
      yield eventFrom(next.value);
  }
}

function addressOf(apiBase: string): Pick<Stripe.StripeConfig, "host" | "port" | "protocol"> {
  const { hostname, port, protocol } = new URL(apiBase);
  const isHttps = protocol === "https:";
  return {
    host: hostname,
    port: port === "" ? (isHttps ? 443 : 80) : Number(port),
    protocol: isHttps ? "https" : "http",
  };
}

const eventFrom = (event: Stripe.Event): PaymentEvent => ({
  id: event.id,
  type: event.type,
  createdAtMs: event.created * 1000,
  live: event.livemode,
  connectedAccount: event.account,
  object: event.data.object,
});

/**
 * Converts the library's errors, which hold what Stripe knows of the payer and must not be logged.
 */
async function asked<Answer>(request: Promise<Answer>): Promise<Answer> {
  try {
    return await request;
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeError)) throw error;
    const code = [error.code, error.decline_code].filter(Boolean).join(": ");
    if (error instanceof Stripe.errors.StripeCardError)
      throw new PaymentError("declined", code || "card_declined", error.requestId);
    // Where an idempotency key is used with other parameters, the outcome of its first request is
    // unknown.
    const refused = error instanceof Stripe.errors.StripeInvalidRequestError;
    throw new PaymentError(refused ? "refused" : "unknown", code || error.type, error.requestId);
  }
}

/** The metadata key under which an order's id is stored on every Stripe object made for it. */
export const orderKey = "switchyard_order";

/**
 * Only the members that are used are checked: webhooks come in the API version of their endpoint,
 * which the gateway does not choose.
 */
const reference = z
  .union([z.string(), z.looseObject({ id: z.string() }).transform(({ id }) => id)])
  .nullish()
  .transform((id) => id ?? undefined);
const metadata = z
  .record(z.string(), z.string())
  .nullish()
  .transform((entries) => entries ?? {});
const cents = z.int().min(0);

/** A checkout (docs.stripe.com/api/checkout/sessions/object). */
export const sessionSchema = z.looseObject({
  id: z.string(),
  client_reference_id: z.string().nullish(),
  amount_total: cents.nullish(),
  currency: z.string().nullish(),
  customer: reference,
  payment_intent: reference,
  payment_status: z.string(),
  status: z.string().nullish(),
  metadata,
});

/** A payment (docs.stripe.com/api/payment_intents/object). */
export const paymentIntentSchema = z.looseObject({
  id: z.string(),
  status: z.string(),
  amount: cents,
  amount_received: cents.nullish(),
  currency: z.string(),
  customer: reference,
  metadata,
  last_payment_error: z
    .looseObject({ code: z.string().nullish(), decline_code: z.string().nullish() })
    .nullish(),
});

/** A charge (docs.stripe.com/api/charges/object). */
export const chargeSchema = z.looseObject({ id: z.string(), payment_intent: reference });

/** A refund or a dispute (docs.stripe.com/api/refunds/object, /disputes/object). */
export const reversalSchema = z.looseObject({
  id: z.string(),
  amount: cents,
  currency: z.string(),
  status: z.string().nullish(),
  payment_intent: reference,
});

/** Checkouts, payments and reversals as they are read. */
export type StripeSession = z.output<typeof sessionSchema>;
export type StripePayment = z.output<typeof paymentIntentSchema>;
export type StripeReversal = z.output<typeof reversalSchema>;

/**
 * Returns why the last attempt of a payment failed, such as `card_declined: insufficient_funds`.
 */
export const lastFailureOf = ({ last_payment_error: error }: StripePayment): string =>
  [error?.code, error?.decline_code].filter(Boolean).join(": ") || "payment_failed";

/** An event that the payment provider reports. */
export interface PaymentEvent {
  /** An `evt_` id. The same event may arrive any number of times. */
  id: string;
  type: string;
  createdAtMs: number;
  live: boolean;
  /** Set for events of a connected account, which are ignored. */
  connectedAccount: string | undefined;
  object: unknown;
}

/** The reason for which a payment's money goes back to its payer. */
export type ReversalKind = "refund" | "dispute";

/**
 * The strongest state reported of a reversal, in any order: it takes the money (`standing`, or
 * `lost` once a dispute is decided), or it does not (`dropped`: a failed refund, a dispute that was
 * won).
 */
export type ReversalState = "standing" | "lost" | "dropped";

/** A refund or a dispute of a payment, in one of the states that it has had. */
export interface Reversal {
  /** The provider's id. */
  id: string;
  kind: ReversalKind;
  state: ReversalState;
  paymentIntentId: string;
  amountCents: number;
}

const standing = (...statuses: string[]): [string, ReversalState][] =>
  statuses.map((status) => [status, "standing"]);

const dropped = (...statuses: string[]): [string, ReversalState][] =>
  statuses.map((status) => [status, "dropped"]);

/**
 * The statuses that move money: docs.stripe.com/api/refunds/object and
 * docs.stripe.com/api/disputes/object. Inquiries (`warning_*`) do not.
 */
const states: Readonly<Record<ReversalKind, ReadonlyMap<string, ReversalState>>> = {
  refund: new Map([
    ...standing("pending", "requires_action", "succeeded"),
    ...dropped("failed", "canceled"),
  ]),
  dispute: new Map([
    ...standing("needs_response", "under_review", "appeal_needs_response", "appeal_under_review"),
    ["lost", "lost"],
    ...dropped("won", "prevented", "charge_refunded"),
  ]),
};

/** Returns the state that a status means; undefined for one that moves no money. */
export const reversalStateOf = (kind: ReversalKind, status: string): ReversalState | undefined =>
  states[kind].get(status);
