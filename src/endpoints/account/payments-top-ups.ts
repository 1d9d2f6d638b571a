import { z } from "zod";
import { creatorIdOf, type AccountCaller } from "../../account/keys/caller.ts";
import { quoteOf } from "../../account/payments/cents.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { messagePage } from "../../pages/message-page.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { pageResponse } from "../pages/page-response.ts";
import { workspaceOf } from "./account-caller.ts";
import { accountBodyBytesMax, neverCached } from "./account-fields.ts";
import {
  askingStripe,
  buyerOf,
  changesPayments,
  creditCentsOf,
  paymentRoute,
  readsPayments,
  usdField,
} from "./payments-fields.ts";
import {
  paymentsOf,
  quoteAnswer,
  quoteSchema,
  topUpObject,
  topUpSchema,
} from "./payments-object.ts";

const listMax = 100;
const returnPath = "/top-up";

const newTopUpSchema = z.strictObject({
  amount: usdField,
  save_card: z.boolean().optional(),
  return_url: z.url().max(2_000).optional(),
});

/** Tells what a top-up costs. */
export const quoteTopUp = defineEndpoint<Dependencies>({
  ...paymentRoute,
  method: "GET",
  path: "/credits/quote",
  access: readsPayments,
  summary: "Tell what a top-up costs.",
  description:
    "amount is in USD. The fee comes on top of the credits: total is what the card is charged.",
  query: z.object({ amount: z.string() }),
  response: quoteSchema,
  handle(context, deps) {
    const payments = paymentsOf(deps);
    const text = context.query.get("amount") ?? "";
    const amount = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isNaN(amount))
      throw new GatewayError("bad_request", "amount: is required: USD as a number.", {
        param: "amount",
      });
    return context.json(
      quoteAnswer(quoteOf(creditCentsOf(amount, payments), payments.settings.fee)),
    );
  },
});

/** Opens a checkout. */
export const createTopUp = defineEndpoint<Dependencies, z.infer<typeof newTopUpSchema>>({
  ...paymentRoute,
  method: "POST",
  idempotent: true,
  path: "/credits/top-ups",
  access: changesPayments,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Buy credits by card.",
  description:
    "Answers the address of a page of Stripe's on which the total is paid, fee included; the credits count as soon as Stripe " +
    "says that it was. save_card keeps the card for automatic top-ups, which are agreed to apart. return_url, on this service, is where " +
    "the browser goes afterwards.",
  body: newTopUpSchema,
  response: topUpSchema.extend({ url: z.string() }),
  async handle(context, deps) {
    const payments = paymentsOf(deps);
    const caller = context.caller as AccountCaller;
    const { amount, save_card: saveCard = false, return_url: wanted } = context.body;
    const creditCents = creditCentsOf(amount, payments);
    const publicUrl = deps.publicUrl();
    if (wanted !== undefined && new URL(wanted).origin !== new URL(publicUrl).origin) {
      throw new GatewayError("bad_request", "return_url: must be an address of this service.", {
        param: "return_url",
      });
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

/** Lists top-ups. */
export const listTopUps = defineEndpoint<Dependencies>({
  ...paymentRoute,
  method: "GET",
  path: "/credits/top-ups",
  access: readsPayments,
  summary: "List top-ups by card.",
  description: `The newest ${listMax}, automatic ones as well.`,
  response: z.object({ object: z.literal("list"), data: z.array(topUpSchema) }),
  async handle(context, deps) {
    const orders = await paymentsOf(deps).orders.list({
      workspaceId: workspaceOf(context).id,
      limit: listMax,
    });
    return context.json({ object: "list", data: orders.map(topUpObject) });
  },
});

/** Shows a top-up. */
export const getTopUp = defineEndpoint<Dependencies>({
  ...paymentRoute,
  method: "GET",
  path: "/credits/top-ups/:id",
  access: readsPayments,
  summary: "Show a top-up by card.",
  response: topUpSchema,
  async handle(context, deps) {
    const order = await paymentsOf(deps).orders.find(context.param("id"));
    if (order?.workspaceId === workspaceOf(context).id) return context.json(topUpObject(order));
    throw new GatewayError("not_found", "There is no such top-up.");
  },
});

/** Where browsers come back to from Stripe. */
export const topUpPage = defineEndpoint<Dependencies>({
  ...paymentRoute,
  base: "root",
  method: "GET",
  path: returnPath,
  otherResponseTypes: ["text/html"],
  access: { open: true },
  summary: "Say that a checkout has ended (a page for people).",
  query: z.object({ paid: z.string().optional() }),
  handle(context, deps) {
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
