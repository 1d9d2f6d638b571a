import Stripe from "stripe";
import type { PaymentSettings } from "./payment-settings.ts";

/** How long Stripe may take for an answer. */
const timeoutMs = 20_000;

/**
 * The library's client. Its requests go through `fetch`, whichever of the library's builds the runtime picks. A
 * request that is repeated carries the idempotency key of the first, so its own retries cannot charge twice.
 */
export function openStripe(secretKey: string, { apiBase }: Pick<PaymentSettings["stripe"], "apiBase">): Stripe {
  const base = apiBase === undefined ? undefined : new URL(apiBase);
  return new Stripe(secretKey, {
    httpClient: Stripe.createFetchHttpClient(), timeout: timeoutMs, telemetry: false,
    // A server on loopback fails for good.
    maxNetworkRetries: base === undefined ? 2 : 0,
    ...(base === undefined ? {} : {
      host: base.hostname, port: base.port === "" ? (base.protocol === "https:" ? 443 : 80) : Number(base.port),
      protocol: base.protocol === "https:" ? "https" as const : "http" as const,
    }),
  });
}

/** What became of a request that Stripe did not grant. */
export type StripeFailure =
  /** The card's bank said no, or wants its owner to be there. */
  | { kind: "declined"; reason: string; paymentIntentId: string | undefined }
  /** Stripe does not do it, and nothing was done. */
  | { kind: "refused"; reason: string }
  /** Nobody knows whether it was done, or it may be tried again. */
  | { kind: "unknown"; reason: string };

/** Tells failures of the library's requests apart; anything else is thrown again. */
export function failureOf(error: unknown): StripeFailure {
  if (!(error instanceof Stripe.errors.StripeError)) throw error;
  const code = [error.code, error.decline_code].filter((part) => part !== undefined).join(": ");
  if (error instanceof Stripe.errors.StripeCardError) {
    return { kind: "declined", reason: code || "card_declined", paymentIntentId: error.payment_intent?.id };
  }
  // A key that is used again with other parameters may have done something before.
  if (error instanceof Stripe.errors.StripeInvalidRequestError) return { kind: "refused", reason: code || "invalid_request" };
  return { kind: "unknown", reason: code || error.type };
}
