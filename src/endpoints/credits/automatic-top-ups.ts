import { z } from "zod";
import { creatorIdOf } from "../../identity/keys/caller.ts";
import { monthOf } from "../../billing/ledger/month.ts";
import { quoteOf, usdFromCents } from "../../billing/payments/cents.ts";
import type { Payments } from "../../billing/payments/open-payments.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, workspaceOf } from "../account/account-fields.ts";
import {
  askingStripe,
  automaticObject,
  automaticSchema,
  centsOf,
  changesPayments,
  creditCentsOf,
  paymentRoute,
  paymentsOf,
  readsPayments,
  usdField,
} from "./payment-objects.ts";

const shared = { ...paymentRoute, path: "/credits/automatic", response: automaticSchema } as const;

const agreementSchema = z.strictObject({
  threshold: usdField,
  amount: usdField,
  monthly_limit: usdField,
  consent: z.literal(true, "must be true: the saved card is charged without asking again"),
});

async function standing(payments: Payments, workspaceId: string) {
  const month = monthOf(payments.clock.nowMs());
  const chargedCents = await payments.automatic.chargedIn({ workspaceId, month });
  return automaticObject(await payments.automaticStore.find(workspaceId), {
    ...payments,
    chargedCents,
  });
}

export const getAutomaticTopUps = defineEndpoint({
  ...shared,
  method: "GET",
  access: readsPayments,
  summary: "Show the automatic top-ups.",
  description:
    "stopped means that the card was refused; the answer has the reason. The card is not charged again until a person agrees again.",
  handle: async (context, deps: Pick<Dependencies, "payments">) =>
    context.json(await standing(paymentsOf(deps), workspaceOf(context).id)),
});

/** Returns the card that is charged from now on. Throws `conflict` where none is saved. */
async function savedCard(payments: Payments, workspaceId: string) {
  const { stripe, orders, live } = payments;
  const customerId = await orders.customerOf({ workspaceId, live });
  const card = customerId === undefined ? undefined : await askingStripe(stripe.cardOf(customerId));
  if (card !== undefined) return card;
  throw new GatewayError(
    "conflict",
    "No card is saved. Pay a top-up with save_card: true first, then agree.",
  );
}

export const agreeToAutomaticTopUps = defineEndpoint({
  ...shared,
  method: "POST",
  access: changesPayments,
  bodyBytesMax: accountBodyBytesMax,
  idempotent: true,
  summary: "Set up automatic top-ups.",
  description:
    "When the balance falls below threshold, the card that was saved last is charged for amount and its fee, never more than " +
    "monthly_limit in a month (UTC), fees included, and never twice at once. The consent is stored with its time and its author. " +
    "Agreeing again replaces the terms, and resumes top-ups that a refused card stopped.",
  body: agreementSchema,
  async handle(context, deps: Pick<Dependencies, "payments">) {
    const payments = paymentsOf(deps);
    const { caller } = context;
    const { id: workspaceId } = caller.workspace;
    const creditCents = creditCentsOf(context.body.amount, payments);
    const thresholdCents = centsOf(context.body.threshold, "threshold");
    const monthlyMaxCents = centsOf(context.body.monthly_limit, "monthly_limit");
    const { chargeCents } = quoteOf(creditCents, payments.settings.fee);
    if (monthlyMaxCents < chargeCents) {
      const message = `monthly_limit: must be at least ${usdFromCents(chargeCents)} USD, what one top-up costs with its fee.`;
      throw new GatewayError("bad_request", message, { param: "monthly_limit" });
    }
    await payments.automaticStore.agree({
      workspaceId,
      live: payments.live,
      creditCents,
      thresholdCents,
      monthlyMaxCents,
      card: await savedCard(payments, workspaceId),
      consentedAtMs: payments.clock.nowMs(),
      consentedBy: creatorIdOf(caller),
    });
    context.changed = workspaceId;
    return context.json(await standing(payments, workspaceId));
  },
});

export const endAutomaticTopUps = defineEndpoint({
  ...shared,
  method: "DELETE",
  access: changesPayments,
  summary: "End automatic top-ups.",
  description: "A charge in progress is still credited.",
  async handle(context, deps: Pick<Dependencies, "payments">) {
    const payments = paymentsOf(deps);
    const { id } = workspaceOf(context);
    if (await payments.automaticStore.turnOff(id)) context.changed = id;
    return context.json(await standing(payments, id));
  },
});
