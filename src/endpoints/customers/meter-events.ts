import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import type { Dependencies } from "../dependencies.ts";
import { customerOfPath, readingCustomers } from "./customers.ts";

/** The most events of an answer. */
const eventsMax = 200;

export const listMeterEvents = defineEndpoint({
  ...readingCustomers,
  method: "GET",
  path: "/customers/:id/meter-events",
  summary: "List what was reported of a customer to Stripe.",
  description:
    "With customers.stripe_meter in the configuration, what a postpaid plan bills is reported each minute to the customer with " +
    `stripe_customer_id, in millionths of a USD. Returns the newest ${eventsMax} events; the id is their identifier at Stripe.`,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(
        z.object({
          id: z.string(),
          object: z.literal("meter_event"),
          event_name: z.string().describe("The name by which Stripe finds the meter."),
          stripe_customer_id: z.string(),
          value: z.int().describe("Millionths of a USD."),
          timestamp: z.string().describe("The time that it counts at."),
          status: z.enum(["pending", "sent", "failed"]).describe("Whether Stripe has it."),
          attempts: z.int().describe("How often it was sent."),
          error: z.string().nullable().describe("Why Stripe does not have it."),
          ended_at: z.string().nullable().describe("When it was sent, or given up."),
        }),
      ),
    }),
  async handle(context, deps: Dependencies) {
    const { id } = await customerOfPath(context, deps);
    const events = await deps.meterEvents.list(id, eventsMax);
    return context.json({
      object: "list",
      data: events.map((event) => ({
        id: event.id,
        object: "meter_event" as const,
        event_name: event.eventName,
        stripe_customer_id: event.stripeCustomerId,
        value: event.units,
        timestamp: new Date(event.atMs).toISOString(),
        status:
          event.endedAtMs === null
            ? ("pending" as const)
            : event.error === null
              ? ("sent" as const)
              : ("failed" as const),
        attempts: event.attempts,
        error: event.error,
        ended_at: isoOrNull(event.endedAtMs),
      })),
    });
  },
});
