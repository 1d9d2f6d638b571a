import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { quoteOf } from "../../billing/payments/cents.ts";
import { readBodyText } from "../../http/bodies/read-body.ts";
import { creatorIdOf } from "../../identity/keys/caller.ts";
import { messagePage } from "../../pages/message-page.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { pageResponse } from "../pages/page-response.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { accountBodyBytesMax, neverCached, workspaceOf } from "../account/account-fields.ts";
import { cutPage, pageQuery, placeFields, unknownCursor } from "../account/list-pages.ts";
import {
  askingStripe,
  buyerOf,
  changesPayments,
  creditCentsOf,
  paymentRoute,
  paymentsOf,
  quoteAnswer,
  quoteSchema,
  readsPayments,
  topUpObject,
  topUpSchema,
  usdField,
} from "./payment-objects.ts";

const listMax = 100;
const returnPath = "/top-up";

const newTopUpSchema = z.strictObject({
  amount: usdField,
  save_card: z.boolean().optional(),
  return_url: z.url().max(2_000).optional(),
});

export const quoteTopUp = defineEndpoint({
  ...paymentRoute,
  method: "GET",
  path: "/credits/quote",
  access: readsPayments,
  summary: "Show the price of a top-up.",
  description: "amount is in USD. The fee is added to it: the card is charged total.",
  query: z.object({ amount: z.string() }),
  response: quoteSchema,
  handle(context, deps: Pick<Dependencies, "payments">) {
    const payments = paymentsOf(deps);
    const text = context.query.get("amount") ?? "";
    const amount = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isNaN(amount)) throw badField("amount", "is required: USD as a number.");
    return context.json(
      quoteAnswer(quoteOf(creditCentsOf(amount, payments), payments.settings.fee)),
    );
  },
});

/** Opens a checkout. */
export const createTopUp = defineEndpoint({
  ...paymentRoute,
  method: "POST",
  idempotent: true,
  path: "/credits/top-ups",
  access: changesPayments,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Buy credits by card.",
  description:
    "Returns the address of a Stripe page on which the total, including the fee, is paid. The credits are available as soon as " +
    "Stripe confirms the payment. save_card saves the card for automatic top-ups, which are set up separately. return_url, on this " +
    "service, is where the browser returns afterwards.",
  body: newTopUpSchema,
  response: () => topUpSchema().extend({ url: z.string() }),
  async handle(context, deps: Pick<Dependencies, "payments" | "publicUrl">) {
    const payments = paymentsOf(deps);
    const caller = context.caller;
    const { amount, save_card: saveCard = false, return_url: wanted } = context.body;
    const creditCents = creditCentsOf(amount, payments);
    const publicUrl = deps.publicUrl();
    if (wanted !== undefined && new URL(wanted).origin !== new URL(publicUrl).origin) {
      throw badField("return_url", "must be an address of this service.");
    }
    const { order, url } = await askingStripe(
      payments.checkouts.open({
        workspaceId: caller.workspace.id,
        creditCents,
        buyer: buyerOf(caller),
        createdBy: creatorIdOf(caller),
        saveCard,
        returnUrl: wanted ?? `${publicUrl}${returnPath}?paid=1`,
        cancelUrl: wanted ?? `${publicUrl}${returnPath}`,
      }),
    );
    context.changed = order.id;
    return context.json({ ...topUpObject(order), url }, { headers: neverCached });
  },
});

export const listTopUps = defineEndpoint({
  ...paymentRoute,
  method: "GET",
  path: "/credits/top-ups",
  access: readsPayments,
  summary: "List top-ups by card.",
  description: `Newest first, automatic top-ups included. Default limit: ${listMax}. next_cursor, sent as cursor, returns the next page.`,
  query: pageQuery,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(topUpSchema()),
      ...placeFields(),
    }),
  async handle(context, deps: Pick<Dependencies, "payments">) {
    const { orders } = paymentsOf(deps);
    const workspaceId = workspaceOf(context).id;
    const query = checkBody(pageQuery, Object.fromEntries(context.query));
    const limit = Number(query.limit ?? listMax);
    const before = query.cursor === undefined ? undefined : await orders.find(query.cursor);
    if (query.cursor !== undefined && before?.workspaceId !== workspaceId) throw unknownCursor();
    const found = await orders.list({
      ...{ workspaceId, limit: limit + 1, before },
      offset: before === undefined ? Number(query.offset ?? 0) : 0,
    });
    const { data, place } = cutPage(found, limit, ({ id }) => id);
    return context.json({ object: "list", data: data.map(topUpObject), ...place });
  },
});

export const getTopUp = defineEndpoint({
  ...paymentRoute,
  method: "GET",
  path: "/credits/top-ups/:id",
  access: readsPayments,
  summary: "Show a top-up by card.",
  response: topUpSchema,
  async handle(context, deps: Pick<Dependencies, "payments">) {
    const order = await paymentsOf(deps).orders.find(context.param("id"));
    if (order?.workspaceId === workspaceOf(context).id) return context.json(topUpObject(order));
    throw new GatewayError("not_found", "There is no such top-up.");
  },
});

export const topUpPage = defineEndpoint({
  ...paymentRoute,
  base: "root",
  method: "GET",
  path: returnPath,
  otherResponseTypes: ["text/html"],
  access: { open: true },
  summary: "Show the page after a checkout.",
  query: z.object({ paid: z.string().optional() }),
  handle(context, deps: Pick<Dependencies, "payments">) {
    paymentsOf(deps);
    const page = context.query.has("paid")
      ? {
          title: "Thank you",
          sentences: ["Your payment is being confirmed. The credits are there as soon as it is."],
        }
      : {
          title: "Nothing was paid",
          sentences: ["You left the checkout before it was complete. Nothing was charged."],
        };
    return pageResponse(
      context,
      messagePage({ ...page, links: [{ href: "/", label: "Go to the start page" }] }),
    );
  },
});

/** The largest body in bytes; Stripe's events have some kilobytes. */
const bodyBytesMax = 512 * 1024;

export const stripeWebhook = defineEndpoint({
  ...paymentRoute,
  counting: "none",
  method: "POST",
  path: "/webhooks/stripe",
  access: { open: true },
  bodyBytesMax,
  summary: "Receive a webhook event from Stripe.",
  description:
    "Accepts only events that Stripe signed within the last five minutes. Events may arrive in any order and more than once. 200 " +
    "means that the event need not be repeated.",
  rawBody: z.looseObject({ id: z.string(), type: z.string() }),
  response: () => z.object({ received: z.literal(true), outcome: z.string() }),
  async handle(context, deps: Pick<Dependencies, "payments">) {
    const { stripe, events, settings, clock } = paymentsOf(deps);
    const { webhookSecret: secret } = settings.stripe;
    if (secret === undefined) {
      throw new GatewayError(
        "not_configured",
        "This service takes no webhooks: its operator has not set STRIPE_WEBHOOK_SECRET.",
      );
    }
    const body = await readBodyText(context.request, bodyBytesMax);
    const signature = context.request.headers.get("stripe-signature") ?? "";
    const event = await stripe.verifiedEvent(body, { signature, secret, nowMs: clock.nowMs() });
    if (event === undefined)
      throw new GatewayError("bad_request", "The event was not signed by Stripe, or too long ago.");
    return context.json({ received: true, outcome: await events.receive(event) });
  },
});
