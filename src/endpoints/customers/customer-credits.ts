import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import type { CustomerCredit } from "../../billing/customers/customer-store.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { nanoFromUsd, usdFromNano } from "../../platform/kernel/money.ts";
import { plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { customerAnswer, customerSchema } from "./customer-object.ts";
import { changingCustomers, customerOfPath, readingCustomers } from "./customers.ts";

const creditSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("customer_credit"),
      customer_id: z.string(),
      amount: z.number().describe("USD that were added; negative where they were taken back."),
      note: z.string().nullable(),
      created_at: z.string(),
    })
    .meta({ id: "CustomerCredit" }),
);

/** Returns the record of credits. */
const creditObject = (credit: CustomerCredit): AnswerOf<typeof creditSchema> => ({
  id: credit.id,
  object: "customer_credit",
  customer_id: credit.customerId,
  amount: usdFromNano(credit.amountNano),
  note: credit.note,
  created_at: new Date(credit.createdAtMs).toISOString(),
});

export const addCustomerCredits = defineEndpoint({
  ...changingCustomers,
  method: "POST",
  idempotent: true,
  path: "/customers/:id/credits",
  summary: "Add credits to a customer, or take them back.",
  description:
    "Prepaid plans end at the credits that were added. Send an Idempotency-Key, such as the id of the payment, so that they are " +
    "added once.",
  body: z.strictObject({
    amount: z
      .number("must be USD as a number")
      .min(-9_000_000, "must be at least -9000000")
      .max(9_000_000, "must be at most 9000000")
      .refine((amount) => (nanoFromUsd(Math.abs(amount)) ?? 0n) > 0n, "must not be 0")
      .describe("USD to add; a negative amount takes back what was added."),
    note: plainText(300).nullish().describe("What it is for, such as the number of an invoice."),
  }),
  response: () => z.object({ data: creditSchema(), customer: customerSchema() }),
  async handle(context, deps: Dependencies) {
    const { amount, note } = context.body;
    const size = nanoFromUsd(Math.abs(amount)) ?? 0n;
    const { customer, credit } = await deps.customers.editor.addCredit(
      await customerOfPath(context, deps),
      { amountNano: amount < 0 ? -size : size, note: note ?? null },
    );
    context.changed = customer.id;
    return context.json({
      data: creditObject(credit),
      customer: await customerAnswer(deps, customer),
    });
  },
});

/** The most credits of an answer. */
const creditsMax = 200;

export const listCustomerCredits = defineEndpoint({
  ...readingCustomers,
  method: "GET",
  path: "/customers/:id/credits",
  summary: "List the credits of a customer, newest first.",
  description: `Returns the newest ${creditsMax}.`,
  response: () => z.object({ object: z.literal("list"), data: z.array(creditSchema()) }),
  async handle(context, deps: Dependencies) {
    const { id } = await customerOfPath(context, deps);
    const credits = await deps.customers.store.credits(id, creditsMax);
    return context.json({ object: "list", data: credits.map(creditObject) });
  },
});
