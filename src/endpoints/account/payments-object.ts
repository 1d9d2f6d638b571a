import { z } from "zod";
import type { AutomaticTopUp } from "../../account/payments/automatic-store.ts";
import { quoteOf, usdFromCents, type Quote } from "../../account/payments/cents.ts";
import { documentId, type IssuedDocument } from "../../account/payments/document.ts";
import type { Payments } from "../../account/payments/open-payments.ts";
import type { Order } from "../../account/payments/order.ts";
import { isoOrNull } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** Payments, where they are on. Throws `not_configured`. */
export function paymentsOf({ payments }: Dependencies): Payments {
  if (payments !== undefined) return payments;
  throw new GatewayError(
    "not_configured",
    "This service takes no card payments: its operator has not set STRIPE_SECRET_KEY.",
  );
}

const quoteFields = {
  amount: z.number(),
  fee: z.number(),
  total: z.number(),
  currency: z.literal("usd"),
};

/** What a top-up costs. */
export const quoteSchema = z.object({ object: z.literal("top_up_quote"), ...quoteFields });

/** A top-up. */
export const topUpSchema = z
  .object({
    id: z.string(),
    object: z.literal("top_up"),
    ...quoteFields,
    kind: z.enum(["checkout", "automatic"]),
    status: z.enum(["open", "paid", "failed", "expired"]),
    failure: z.string().nullable(),
    created_at: z.string(),
    created_by: z.string(),
  })
  .meta({ id: "TopUp" });

/** A workspace's automatic top-ups. */
export const automaticSchema = z
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
  .meta({ id: "AutomaticTopUps" });

/** An invoice or a credit note. */
export const documentSchema = z
  .object({
    id: z.string(),
    object: z.enum(["invoice", "credit_note"]),
    top_up_id: z.string(),
    issued_at: z.string(),
    ...quoteFields,
  })
  .meta({ id: "Invoice" });

const quoteObject = ({ creditCents, feeCents, chargeCents }: Quote) => ({
  amount: usdFromCents(creditCents),
  fee: usdFromCents(feeCents),
  total: usdFromCents(chargeCents),
  currency: "usd" as const,
});

/** A quote as clients read it. */
export const quoteAnswer = (quote: Quote): z.infer<typeof quoteSchema> => ({
  object: "top_up_quote",
  ...quoteObject(quote),
});

/** An order as clients read it. */
export const topUpObject = (order: Order): z.infer<typeof topUpSchema> => ({
  id: order.id,
  object: "top_up",
  ...quoteObject(order),
  kind: order.kind,
  status: order.state,
  failure: order.failure,
  created_at: new Date(order.createdAtMs).toISOString(),
  created_by: order.createdBy,
});

/** An agreement as clients read it; one that was ended keeps its terms. */
export function automaticObject(
  topUp: AutomaticTopUp | undefined,
  { chargedCents, settings }: { chargedCents: number } & Pick<Payments, "settings">,
): z.infer<typeof automaticSchema> {
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

/** A document as clients read it; amounts of credit notes are what was given back. */
export const documentObject = (document: IssuedDocument): z.infer<typeof documentSchema> => ({
  id: documentId(document),
  object: document.series.endsWith("credit_note") ? "credit_note" : "invoice",
  top_up_id: document.orderId,
  issued_at: new Date(document.issuedAtMs).toISOString(),
  ...quoteObject({ ...document, chargeCents: document.creditCents + document.feeCents }),
});
