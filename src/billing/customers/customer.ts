import { createHash } from "node:crypto";
import {
  counterOf,
  plainWeight,
  type Budget,
  type BudgetBound,
  type BudgetPeriod,
} from "../budgets/budget.ts";

/** The most characters of a customer's own id. */
export const externalIdCharactersMax = 200;

/** The kinds of plans that customers can have. */
export const planTypes = ["free", "prepaid", "postpaid"] as const;
type PlanType = (typeof planTypes)[number];

/** What a customer may use, and what it pays for it. */
export interface CustomerPlan {
  /**
   * `free` ends at the allowance of a period, `prepaid` at the credits that were added, and
   * `postpaid` at the allowance and the cap of a period.
   */
  type: PlanType;
  period: BudgetPeriod;
  /** The part of each period, in nano-USD, that is not billed. Not used by prepaid plans. */
  allowanceNano: bigint;
  /** The most that a postpaid plan bills for a period; null bills without a bound. */
  capNano: bigint | null;
  /** The price of what the customer had used when a prepaid plan began, which credits do not pay. */
  baseNano: bigint;
  /** Ten-thousandths of the cost that requests are priced at. */
  weight: number;
  /** The same for single models, by lower-case id. */
  weightsByModel: Readonly<Record<string, number>>;
}

/** An end customer of a workspace, which requests name. */
export interface Customer {
  /** A `cust_` id, which follows from the workspace and the external id. */
  id: string;
  workspaceId: string;
  /** The name that requests give: `user`, `safety_identifier` or the header. */
  externalId: string;
  name: string;
  email: string | null;
  /** Null where the plan is the rule's of the configuration. */
  plan: CustomerPlan | null;
  /** The credits that were ever added, for prepaid plans. */
  creditsNano: bigint;
  suspended: boolean;
  /** The id of the customer at Stripe, to which usage is reported. */
  stripeCustomerId: string | null;
  /** Counts the signed links to its balance that are void: each was signed with a lower version. */
  linkVersion: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** Returns the id of a customer. All gateways agree on it without asking each other. */
export const customerIdOf = (workspaceId: string, externalId: string): string =>
  `cust_${createHash("sha256").update(`${workspaceId}\n${externalId}`).digest("hex").slice(0, 32)}`;

/** Returns the weight of a markup, such as 0.2 for a fifth more than the cost. */
export const weightOfMarkup = (markup: number): number => Math.round((1 + markup) * plainWeight);

/** Returns the markup of a weight. */
export const markupOf = (weight: number): number => (weight - plainWeight) / plainWeight;

/** Returns the share of the cost that a plan charges for the models that may serve a request. */
export function weightOf(plan: CustomerPlan, models: readonly string[]): number {
  const weights = models.map((model) => plan.weightsByModel[model.toLowerCase()] ?? plan.weight);
  return weights.length === 0 ? plan.weight : Math.max(...weights);
}

/** Returns the price at which a plan refuses requests; null where it has no bound. */
export function limitOf(
  plan: CustomerPlan,
  { creditsNano }: Pick<Customer, "creditsNano">,
): bigint | null {
  if (plan.type === "prepaid") return plan.baseNano + creditsNano;
  if (plan.type === "free") return plan.allowanceNano;
  return plan.capNano === null ? null : plan.allowanceNano + plan.capNano;
}

/** Returns what a plan bills for a period in which a customer used something. */
export function billedOf(plan: CustomerPlan, priceNano: bigint): bigint {
  if (plan.type === "free") return 0n;
  if (plan.type === "prepaid") return priceNano;
  return priceNano > plan.allowanceNano ? priceNano - plan.allowanceNano : 0n;
}

/** Returns the period that a plan counts. Credits that were paid ahead are counted in one. */
export const planPeriod = ({ type, period }: CustomerPlan): BudgetPeriod =>
  type === "prepaid" ? "total" : period;

/** Returns the limit of a customer in the form in which the ledger enforces budgets. */
export const planBudget = (customer: Customer, plan: CustomerPlan): Budget | undefined => {
  const limitNano = limitOf(plan, customer);
  return limitNano === null
    ? undefined
    : {
        id: customer.id,
        workspaceId: customer.workspaceId,
        name: customer.name,
        scope: "plan",
        subject: customer.externalId,
        period: planPeriod(plan),
        timeZone: null,
        action: "block",
        limitNano,
        thresholds: [],
        emails: [],
        webhookUrl: null,
        secretVersion: 0,
        createdAtMs: customer.createdAtMs,
        updatedAtMs: null,
      };
};

/** Returns the bound of a customer on a day; undefined where its plan has none. */
export function boundOf(
  customer: Customer,
  { plan, day }: { plan: CustomerPlan; day: number },
): BudgetBound | undefined {
  const budget = planBudget(customer, plan);
  return budget && { budget, counter: counterOf(budget, day) };
}
