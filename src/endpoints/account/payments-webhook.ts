import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { readBodyText } from "../../http/read-body.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { paymentRoute } from "./payments-fields.ts";
import { paymentsOf } from "./payments-object.ts";

/** Stripe's events are some kilobytes. */
const bodyBytesMax = 512 * 1024;

/** Takes events of Stripe. */
export const stripeWebhook = defineEndpoint<Dependencies>({
  ...paymentRoute,
  counting: "none",
  method: "POST",
  path: "/webhooks/stripe",
  access: { open: true },
  bodyBytesMax,
  summary: "Take an event of Stripe.",
  description:
    "Only events that Stripe signed within the last five minutes are looked at. They may come in any order and any number of " +
    "times. 200 means that the event needs no repetition.",
  rawBody: z.looseObject({ id: z.string(), type: z.string() }),
  response: z.object({ received: z.literal(true), outcome: z.string() }),
  async handle(context, deps) {
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
