import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { periodAt } from "../../billing/budgets/budget.ts";
import {
  noSums,
  type CustomerDay,
  type CustomerSums,
} from "../../billing/customers/customer-store.ts";
import { billedOf, planPeriod, type CustomerPlan } from "../../billing/customers/customer.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { csvHeaders, csvLine } from "../insights/csv.ts";
import { usageObject, usageSchema } from "./customer-object.ts";
import { customerOfPath, readingCustomers } from "./customers.ts";

const dayField = z.iso.date("must be a day such as 2027-01-31");
const querySchema = z.object({
  from: dayField.optional().describe("The first day, such as 2027-01-01."),
  to: dayField.optional().describe("The day after the last one."),
  format: z
    .enum(["json", "csv"], "must be json or csv")
    .default("json")
    .describe("csv answers a table."),
});

/** The most days of a statement: a year and a day. */
const daysMax = 366;

const dayOf = (date: string): number => Date.parse(`${date}T00:00:00Z`) / dayMs;
const dateOf = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/** Returns the days of a statement: those that are named, else the current month. */
function daysOf(
  { from, to }: Pick<z.infer<typeof querySchema>, "from" | "to">,
  nowMs: number,
): { fromDay: number; toDay: number } {
  const month = periodAt("monthly", nowMs);
  const fromDay = from === undefined ? month.startMs / dayMs : dayOf(from);
  const toDay = to === undefined ? Math.max(month.endMs / dayMs, fromDay + 1) : dayOf(to);
  if (toDay <= fromDay) throw badField("to", "must be a later day than from.");
  if (toDay - fromDay > daysMax) throw badField("from", `at most ${daysMax} days before to.`);
  return { fromDay, toDay };
}

/** Returns the sum of some days. */
const summed = (days: readonly CustomerSums[]): CustomerSums =>
  days.reduce(
    (sum, day) => ({
      requests: sum.requests + day.requests,
      promptTokens: sum.promptTokens + day.promptTokens,
      completionTokens: sum.completionTokens + day.completionTokens,
      costNano: sum.costNano + day.costNano,
      priceNano: sum.priceNano + day.priceNano,
    }),
    noSums,
  );

/** Returns what a plan bills for days, of which each period is billed by itself. */
function billedFor(plan: CustomerPlan | undefined, days: readonly CustomerDay[]): bigint {
  if (plan === undefined) return 0n;
  const periods = Map.groupBy(days, ({ day }) => periodAt(planPeriod(plan), day * dayMs).startMs);
  return [...periods.values()]
    .map((each) => billedOf(plan, summed(each).priceNano))
    .reduce((sum, each) => sum + each, 0n);
}

const csvColumns = [
  "day",
  "model",
  "requests",
  "prompt_tokens",
  "completion_tokens",
  "cost",
  "price",
  "margin",
] as const;

/** Returns what a customer used, by day and model, with its cost, price and margin. */
export const customerStatement = defineEndpoint({
  ...readingCustomers,
  method: "GET",
  path: "/customers/:id/statement",
  summary: "Report what a customer used, by day and model.",
  description:
    "Covers whole days (UTC): those from `from` until before `to`, by default the current month. Amounts are exact to the " +
    "nano-dollar: the price is the cost of each request with its markup, rounded up, and the margin is the price less the cost. " +
    "`billed` is what the present plan bills of it, each of its periods by itself.",
  query: querySchema,
  otherResponseTypes: ["text/csv"],
  response: () =>
    z.object({
      object: z.literal("customer_statement"),
      customer_id: z.string(),
      external_id: z.string(),
      from: z.string(),
      to: z.string(),
      total: z.object(usageSchema()),
      billed: z.number().describe("USD that the plan bills for these days."),
      data: z.array(z.object({ day: z.string(), model: z.string(), ...usageSchema() })),
    }),
  async handle(context, deps: Dependencies) {
    const { store, book, flush } = deps.customers;
    const { format, ...named } = checkBody(querySchema, Object.fromEntries(context.query));
    const range = daysOf(named, deps.clock.nowMs());
    const customer = await customerOfPath(context, deps);
    await flush();
    const days = await store.days(customer, range);
    const data = days.map((day) => ({
      day: dateOf(day.day),
      model: day.model,
      ...usageObject(day),
    }));
    if (format === "csv") {
      const lines = [csvColumns, ...data.map((line) => csvColumns.map((column) => line[column]))];
      return new Response(lines.map(csvLine).join(""), {
        headers: { ...context.headers, ...csvHeaders(`statement-${dateOf(range.fromDay)}.csv`) },
      });
    }
    return context.json({
      object: "customer_statement",
      customer_id: customer.id,
      external_id: customer.externalId,
      from: dateOf(range.fromDay),
      to: dateOf(range.toDay),
      total: usageObject(summed(days)),
      billed: usdFromNano(billedFor(book.planOf(customer), days)),
      data,
    });
  },
});
