import { z } from "zod";
import {
  basePeriodOf,
  periodAt,
  periodFrom,
  type BudgetPeriod,
  type Span,
} from "../../billing/budgets/budget.ts";
import { noSums, type CustomerSums } from "../../billing/customers/customer-store.ts";
import {
  billedOf,
  limitOf,
  markupOf,
  planPeriod,
  planTypes,
  weightOfMarkup,
  type Customer,
  type CustomerPlan,
} from "../../billing/customers/customer.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { nanoFromUsd, usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";

const periods = { day: "daily", week: "weekly", month: "monthly" } as const;
type PeriodName = keyof typeof periods;
const periodNames = Object.keys(periods) as [PeriodName, ...PeriodName[]];

const nameOfPeriod = (period: BudgetPeriod): PeriodName =>
  periodNames.find((name) => periods[name] === basePeriodOf(period).period) ?? "month";

const amountField = z
  .number("must be USD as a number")
  .min(0, "must not be negative")
  .max(9_000_000, "must be at most 9000000");
const markupField = z
  .number("must be a share such as 0.2")
  .min(-0.9, "must be at least -0.9")
  .max(100, "must be at most 100");

/** The plan of a customer, as callers write it. */
export const planSchema = z
  .strictObject({
    type: z
      .enum(planTypes, "must be free, prepaid or postpaid")
      .describe(
        "`free` ends at the allowance of a period, `prepaid` at the credits that were added, `postpaid` at the allowance and the cap.",
      ),
    allowance: amountField
      .optional()
      .describe("USD of each period, at the customer's price, that are not billed."),
    cap: amountField
      .nullish()
      .describe("Most USD that a postpaid plan bills for a period. Null bills without a bound."),
    per: z
      .enum(periodNames, "must be day, week or month")
      .optional()
      .describe("The period (UTC). Default: month."),
    reset_day: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(31, "must be at most 31")
      .optional()
      .describe(
        "Day of the month, or of the week (1 is Monday), on which a period begins. Default: 1.",
      ),
    markup: markupField
      .optional()
      .describe(
        "Share that is added to the cost of each request: 0.2 is a fifth more. Default: 0.",
      ),
    markup_by_model: z
      .record(z.string().min(1).max(300), markupField)
      .optional()
      .describe("The markup of single models, by their ids, in place of `markup`."),
  })
  .describe("What the customer may use, and what it pays for it.");

/** Returns a plan as it is kept. Throws `bad_request` for fields that its type does not have. */
export function planOf(body: z.infer<typeof planSchema>): CustomerPlan {
  const { type, allowance, cap, per = "month", markup = 0, markup_by_model: byModel = {} } = body;
  const { reset_day: resetDay = 1 } = body;
  const refuse = (param: string, problem: string): never => {
    throw new GatewayError("bad_request", `plan.${param}: ${problem}`, { param: `plan.${param}` });
  };
  if (type === "free" && allowance === undefined)
    refuse("allowance", "is required for free plans: the USD of each period");
  if (type === "prepaid" && allowance !== undefined)
    refuse("allowance", "is not for prepaid plans. POST /customers/{id}/credits adds credits");
  if (resetDay > { day: 1, week: 7, month: 31 }[per]) refuse("reset_day", `is no day of a ${per}`);
  if (type !== "postpaid" && typeof cap === "number") refuse("cap", "is for postpaid plans alone");
  return {
    type,
    period: periodFrom(periods[per], resetDay),
    allowanceNano: nanoFromUsd(allowance ?? 0) ?? 0n,
    capNano: typeof cap === "number" ? (nanoFromUsd(cap) ?? 0n) : null,
    baseNano: 0n,
    weight: weightOfMarkup(markup),
    weightsByModel: Object.fromEntries(
      Object.entries(byModel).map(([model, each]) => [model.toLowerCase(), weightOfMarkup(each)]),
    ),
  };
}

/** Returns a plan as callers read it. */
const planObject = (plan: CustomerPlan) => ({
  type: plan.type,
  allowance: plan.type === "prepaid" ? null : usdFromNano(plan.allowanceNano),
  cap: plan.capNano === null ? null : usdFromNano(plan.capNano),
  per: nameOfPeriod(plan.period),
  reset_day: basePeriodOf(plan.period).resetDay,
  markup: markupOf(plan.weight),
  markup_by_model: Object.fromEntries(
    Object.entries(plan.weightsByModel).map(([model, weight]) => [model, markupOf(weight)]),
  ),
});

const planObjectSchema = lazily(() =>
  z.object({
    type: z.enum(planTypes),
    allowance: z.number().nullable().describe("USD of each period that are not billed."),
    cap: z.number().nullable().describe("Most USD that are billed for a period; null: no bound."),
    per: z.enum(periodNames).describe("The period (UTC)."),
    reset_day: z.int().describe("Day of the month or week on which a period begins."),
    markup: z.number().describe("Share that is added to the cost of requests."),
    markup_by_model: z.record(z.string(), z.number()).describe("The markup of single models."),
  }),
);

/** What was used, with the cost of it and its price. */
export const usageSchema = lazily(() => ({
  requests: z.int().describe("Requests that were charged."),
  prompt_tokens: z.int().describe("Tokens of their prompts."),
  completion_tokens: z.int().describe("Tokens of their answers."),
  cost: z.number().describe("USD that the workspace paid for them."),
  price: z.number().describe("USD that they cost the customer: the cost with its markup."),
  margin: z.number().describe("USD of the price less the cost."),
}));

/** Returns sums as callers read them. */
export const usageObject = (sums: CustomerSums) => ({
  requests: sums.requests,
  prompt_tokens: sums.promptTokens,
  completion_tokens: sums.completionTokens,
  cost: usdFromNano(sums.costNano),
  price: usdFromNano(sums.priceNano),
  margin: usdFromNano(sums.priceNano - sums.costNano),
});

const statuses = ["active", "exhausted", "suspended"] as const;

/** The record of a customer. */
export const customerSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("customer"),
      external_id: z
        .string()
        .describe("What requests name it by: X-Service-Customer, safety_identifier or user."),
      name: z.string(),
      email: z.string().nullable(),
      status: z.enum(statuses).describe("Whether its requests are served, and if not, why."),
      plan: planObjectSchema()
        .nullable()
        .describe("The plan in force; null where neither it nor the configuration has one."),
      has_own_plan: z.boolean().describe("Whether the plan is its own, and not the rule's."),
      limit: z
        .number()
        .nullable()
        .describe("USD at its price that it may use in the period; null without a bound."),
      used: z.number().describe("USD at its price that it used in the period."),
      remaining: z.number().nullable().describe("USD left; null without a bound."),
      billed: z.number().describe("USD of what it used that its plan bills."),
      credits: z.number().describe("USD of all credits that were added to it."),
      period_start: z.string().nullable().describe("Null for prepaid plans, which have no period."),
      period_end: z.string().nullable(),
      usage: z.object(usageSchema()).describe("What it used in the period."),
      stripe_customer_id: z.string().nullable(),
      created_at: z.string(),
      updated_at: z.string(),
    })
    .meta({ id: "Customer" }),
);

/** Returns the span that a customer is counted in: the period of its plan, else the month. */
const spanOf = (plan: CustomerPlan | undefined, nowMs: number): Span =>
  periodAt(plan === undefined ? "monthly" : planPeriod(plan), nowMs);

const daysOf = ({ startMs, endMs }: Span) => ({
  fromDay: startMs / dayMs,
  toDay: endMs / dayMs,
});

/** Returns the records of customers of one workspace, with what each used. */
export async function customerObjects(
  { customers: { store, book, flush }, clock }: Pick<Dependencies, "customers" | "clock">,
  customers: readonly Customer[],
): Promise<AnswerOf<typeof customerSchema>[]> {
  const nowMs = clock.nowMs();
  await flush();
  const bySpan = Map.groupBy(customers, (each) => spanOf(book.planOf(each), nowMs).startMs);
  const sums = new Map<string, CustomerSums>();
  for (const group of bySpan.values()) {
    const [first] = group;
    if (first === undefined) continue;
    const found = await store.sums(first.workspaceId, {
      externalIds: group.map(({ externalId }) => externalId),
      ...daysOf(spanOf(book.planOf(first), nowMs)),
    });
    for (const [externalId, each] of found) sums.set(externalId, each);
  }
  return customers.map((customer) =>
    customerObject(customer, {
      plan: book.planOf(customer),
      sums: sums.get(customer.externalId) ?? noSums,
      nowMs,
    }),
  );
}

function customerObject(
  customer: Customer,
  { plan, sums, nowMs }: { plan: CustomerPlan | undefined; sums: CustomerSums; nowMs: number },
): AnswerOf<typeof customerSchema> {
  const limitNano = plan === undefined ? null : limitOf(plan, customer);
  const baseNano = plan?.type === "prepaid" ? plan.baseNano : 0n;
  const usedNano = sums.priceNano - baseNano;
  const leftNano = limitNano === null ? null : limitNano - sums.priceNano;
  const span = plan?.type === "prepaid" ? undefined : spanOf(plan, nowMs);
  return {
    id: customer.id,
    object: "customer",
    external_id: customer.externalId,
    name: customer.name,
    email: customer.email,
    status: customer.suspended
      ? "suspended"
      : leftNano !== null && leftNano <= 0n
        ? "exhausted"
        : "active",
    plan: plan === undefined ? null : planObject(plan),
    has_own_plan: customer.plan !== null,
    limit: limitNano === null ? null : usdFromNano(limitNano - baseNano),
    used: usdFromNano(usedNano),
    remaining: leftNano === null ? null : usdFromNano(leftNano > 0n ? leftNano : 0n),
    billed: usdFromNano(plan === undefined ? 0n : billedOf(plan, usedNano)),
    credits: usdFromNano(customer.creditsNano),
    period_start: span === undefined ? null : new Date(span.startMs).toISOString(),
    period_end: span === undefined ? null : new Date(span.endMs).toISOString(),
    usage: usageObject(sums),
    stripe_customer_id: customer.stripeCustomerId,
    created_at: new Date(customer.createdAtMs).toISOString(),
    updated_at: new Date(customer.updatedAtMs).toISOString(),
  };
}

/** Returns the record of one customer. */
export async function customerAnswer(
  deps: Pick<Dependencies, "customers" | "clock">,
  customer: Customer,
): Promise<AnswerOf<typeof customerSchema>> {
  const [data] = await customerObjects(deps, [customer]);
  if (data === undefined) throw new GatewayError("not_found", "There is no such customer.");
  return data;
}
