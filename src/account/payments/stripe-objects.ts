import { z } from "zod";

/** The metadata key under which an order's id stands on everything that is made for it. */
export const orderKey = "switchyard_order";

/** Only what is used is checked: webhooks come in the API version of their endpoint, which is not ours to choose. */
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

/** What a payment was made with (docs.stripe.com/api/charges/object). */
export const chargeSchema = z.looseObject({ id: z.string(), payment_intent: reference });

/** Money that is on its way back, or that its payer's bank wants back (docs.stripe.com/api/refunds/object, /disputes/object). */
export const claimSchema = z.looseObject({
  id: z.string(),
  amount: cents,
  currency: z.string(),
  status: z.string().nullish(),
  payment_intent: reference,
});

/** Checkouts, payments and claims as they are read. */
export type StripeSession = z.output<typeof sessionSchema>;
export type StripePayment = z.output<typeof paymentIntentSchema>;
export type StripeClaim = z.output<typeof claimSchema>;

/** Why the last try of a payment failed, such as `card_declined: insufficient_funds`. */
export const lastFailureOf = ({ last_payment_error: error }: StripePayment): string =>
  [error?.code, error?.decline_code].filter(Boolean).join(": ") || "payment_failed";
