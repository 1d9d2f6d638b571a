import type { NotReserved } from "../ledger/hold-rule.ts";
import { basePeriodOf, type Budget } from "./budget.ts";

/** Returns the members that name a budget, or a customer, in its refusals. */
export function budgetFacts({ id, name, scope, subject, period: stored, timeZone }: Budget) {
  const { period, resetDay } = basePeriodOf(stored);
  if (scope === "plan") return { customer_id: id, customer: subject, customer_period: period };
  return {
    budget_id: id,
    budget_name: name,
    budget_scope: scope,
    budget_subject: subject,
    budget_period: period,
    ...(resetDay !== 1 && { budget_reset_day: resetDay }),
    ...(timeZone !== null && { budget_time_zone: timeZone }),
  };
}

/** Returns the members of a refusal that say which limit has too little left. */
export const shortageFacts = ({ reason, budget }: Pick<NotReserved, "reason" | "budget">) => ({
  reason:
    budget?.scope === "plan"
      ? "customer_limit_reached"
      : ({ key_limit: "key_limit_reached", budget: "budget_reached" }[reason as string] ??
        "balance_too_low"),
  ...(budget !== undefined && budgetFacts(budget)),
});
