import { z } from "zod";
import { centsFromUsd, quoteOf, usdFromCents, type Quote } from "../../billing/payments/cents.ts";
import {
  documentId,
  PaymentError,
  type IssuedDocument,
  type Buyer,
  type Order,
} from "../../billing/payments/orders.ts";
import type { Payments } from "../../billing/payments/open-payments.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import type { AutomaticTopUp } from "../../billing/payments/automatic-store.ts";

/** The declarations that routes of payments share. */
export const paymentRoute = {
  base: "api",
  counting: "at-door",
  tag: "Payments",
  encodeError: encodeContractError,
} as const;

/** Reading needs the scope for the balance. */
export const readsPayments = { managementScope: "read:credits", session: true } as const;

/**
 * Spending money is reserved to owners and admins, and to keys that could create other keys anyway.
 */
export const changesPayments = { managementScope: "write:management-keys", session: true } as const;

/** An amount of USD. */
export const usdField = z
  .number("is required: USD as a number")
  .min(0, "must not be below 0")
  .max(1_000_000, "must be at most 1000000");

/** Returns an amount in whole cents. Throws `bad_request`. */
export function centsOf(usd: number, param: string): number {
  const cents = centsFromUsd(usd);
  if (cents !== undefined) return cents;
  throw badField(param, "must be whole cents.");
}

/** Returns the cents of credits, within what may be bought at once. Throws `bad_request`. */
export function creditCentsOf(
  usd: number,
  { settings: { creditCentsMin, creditCentsMax } }: Pick<Payments, "settings">,
): number {
  const cents = centsOf(usd, "amount");
  if (cents >= creditCentsMin && cents <= creditCentsMax) return cents;
  const [least, most] = [creditCentsMin, creditCentsMax].map(usdFromCents);
  throw badField("amount", `must be from ${least} to ${most} USD.`);
}

/** Returns the buyer, as the invoice names them. */
export const buyerOf = (caller: AccountCaller): Buyer => ({
  name: caller.workspace.name,
  ...(caller.kind === "session" ? { email: caller.user.email } : {}),
});

/**
 * Returns the result of a request to Stripe. Throws `service_unavailable` where it may be tried
 * again, and `bad_gateway` where not.
 */
export async function askingStripe<Answer>(request: Promise<Answer>): Promise<Answer> {
  try {
    return await request;
  } catch (cause) {
    if (!(cause instanceof PaymentError)) throw cause;
    const detail = cause.message;
    if (cause.kind === "unknown") {
      const message = "Stripe did not answer. Nothing was charged; try again.";
      throw new GatewayError("service_unavailable", message, {
        detail,
        cause,
        retryAfterSeconds: 5,
      });
    }
    throw new GatewayError("bad_gateway", "Stripe refused the request. Nothing was charged.", {
      detail,
      cause,
      retry: false,
    });
  }
}

/** Returns the payments. Throws `not_configured` where they are off. */
export function paymentsOf({ payments }: Pick<Dependencies, "payments">): Payments {
  if (payments !== undefined) return payments;
  throw new GatewayError(
    "not_configured",
    "This service takes no card payments: its operator has not set STRIPE_SECRET_KEY.",
  );
}

const quoteFields = lazily(() => ({
  amount: z.number(),
  fee: z.number(),
  total: z.number(),
  currency: z.literal("usd"),
}));

/** The price of a top-up. */
export const quoteSchema = lazily(() =>
  z.object({ object: z.literal("top_up_quote"), ...quoteFields() }),
);

/** A top-up. */
export const topUpSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("top_up"),
      ...quoteFields(),
      kind: z.enum(["checkout", "automatic"]),
      status: z.enum(["open", "paid", "failed", "expired"]),
      failure: z.string().nullable(),
      created_at: z.string(),
      created_by: z.string(),
    })
    .meta({ id: "TopUp" }),
);

/** A workspace's automatic top-ups. */
export const automaticSchema = lazily(() =>
  z
    .object({
      object: z.literal("automatic_top_ups"),
      status: z.enum(["on", "off", "stopped"]),
      stopped_reason: z.string().nullable(),
      stopped_at: z.string().nullable(),
      threshold: z.number().nullable(),
      amount: z.number().nullable(),
      fee: z.number().nullable(),
      total: z.number().nullable(),
      monthly_limit: z.number().nullable(),
      charged_this_month: z.number(),
      card: z.string().nullable(),
      consented_at: z.string().nullable(),
      consented_by: z.string().nullable(),
    })
    .meta({ id: "AutomaticTopUps" }),
);

/** An invoice or a credit note. */
export const documentSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.enum(["invoice", "credit_note"]),
      top_up_id: z.string(),
      issued_at: z.string(),
      ...quoteFields(),
    })
    .meta({ id: "Invoice" }),
);

const quoteObject = ({ creditCents, feeCents, chargeCents }: Quote) => ({
  amount: usdFromCents(creditCents),
  fee: usdFromCents(feeCents),
  total: usdFromCents(chargeCents),
  currency: "usd" as const,
});

/** Returns a quote in the form that clients read. */
export const quoteAnswer = (quote: Quote): AnswerOf<typeof quoteSchema> => ({
  object: "top_up_quote",
  ...quoteObject(quote),
});

/** Returns an order in the form that clients read. */
export const topUpObject = (order: Order): AnswerOf<typeof topUpSchema> => ({
  id: order.id,
  object: "top_up",
  ...quoteObject(order),
  kind: order.kind,
  status: order.state,
  failure: order.failure,
  created_at: new Date(order.createdAtMs).toISOString(),
  created_by: order.createdBy,
});

/** Returns an agreement in the form that clients read. One that was ended keeps its terms. */
export function automaticObject(
  topUp: AutomaticTopUp | undefined,
  { chargedCents, settings }: { chargedCents: number } & Pick<Payments, "settings">,
): AnswerOf<typeof automaticSchema> {
  const usd = (cents: number | undefined): number | null =>
    cents === undefined ? null : usdFromCents(cents);
  const quote = topUp && quoteOf(topUp.creditCents, settings.fee);
  const stopped = topUp?.enabled ? topUp.stopped : undefined;
  return {
    object: "automatic_top_ups",
    status: !topUp?.enabled ? "off" : stopped ? "stopped" : "on",
    stopped_reason: stopped?.reason ?? null,
    stopped_at: isoOrNull(stopped?.atMs ?? null),
    threshold: usd(topUp?.thresholdCents),
    amount: usd(quote?.creditCents),
    fee: usd(quote?.feeCents),
    total: usd(quote?.chargeCents),
    monthly_limit: usd(topUp?.monthlyMaxCents),
    charged_this_month: usdFromCents(chargedCents),
    card: topUp?.card.label ?? null,
    consented_at: isoOrNull(topUp?.consentedAtMs ?? null),
    consented_by: topUp?.consentedBy ?? null,
  };
}

/**
 * Returns a document in the form that clients read. The amounts of credit notes are what was given
 * back.
 */
export const documentObject = (document: IssuedDocument): AnswerOf<typeof documentSchema> => ({
  id: documentId(document),
  object: document.series.endsWith("credit_note") ? "credit_note" : "invoice",
  top_up_id: document.orderId,
  issued_at: new Date(document.issuedAtMs).toISOString(),
  ...quoteObject({ ...document, chargeCents: document.creditCents + document.feeCents }),
});
