import { z } from "zod";
import { basePeriodOf, type Budget } from "../../billing/budgets/budget.ts";
import type { KeyAccount } from "../../billing/ledger/book/account-book.ts";
import type { LlmKey } from "../../identity/keys/llm-key-store.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { limitSpentNano } from "./llm-key-object.ts";

const usd = z.number();

/** A bound on what a key may spend, in OpenRouter's form. */
const keyBudgetSchema = lazily(() =>
  z
    .object({
      scope: z
        .enum(["api_key", "key_limit"])
        .describe("api_key: a blocking budget of the key. key_limit: the key's own limit."),
      budget_id: z.string().nullable().describe("Id of the budget; null for the key's own limit."),
      guardrail_id: z.null().describe("Always null: there are no guardrails."),
      limit_usd: usd.describe("Limit in USD for one window."),
      spend_usd: usd.describe("What counts towards the limit in the current window."),
      remaining_usd: usd.describe("Difference of limit_usd and spend_usd."),
      include_byok: z
        .boolean()
        .describe("Whether usage of the workspace's own provider keys counts."),
      reset_interval: z
        .enum(["daily", "weekly", "monthly"])
        .nullable()
        .describe(
          "Window: a period (UTC) for a budget, a rolling window for the key's limit, null for all time.",
        ),
      resets_at: z
        .string()
        .nullable()
        .describe("When the period ends, ISO 8601; null for a rolling window."),
    })
    .meta({ id: "KeyBudget" }),
);

type KeyBudget = AnswerOf<typeof keyBudgetSchema>;

/** The schemas of what `keyBudgets` returns. */
export const keyBudgetFields = lazily(() => ({
  budgets: z
    .array(keyBudgetSchema())
    .describe(
      "Bounds of this key alone: its blocking budgets and its limit. Those of the workspace are in GET /budgets.",
    ),
  effective_budget: keyBudgetSchema()
    .nullable()
    .describe("The bound with the least left; null without any."),
}));

/**
 * Returns the bounds on a key's own spending, and the one with the least left. Budgets of the
 * workspace and of people are left out: they tell what others spend.
 */
export async function keyBudgets(
  { budgets }: Pick<Dependencies, "budgets">,
  key: LlmKey,
  usage: { account: KeyAccount; nowMs: number },
): Promise<{ budgets: KeyBudget[]; effective_budget: KeyBudget | null }> {
  const own = (await budgets.editor.list(key.workspaceId)).filter(
    ({ scope, subject, action }) => scope === "key" && subject === key.id && action === "block",
  );
  const bounds = [
    ...(await Promise.all(own.map((budget) => budgetBound(budgets, budget)))),
    ...limitBound(key, usage),
  ];
  const [first = null, ...others] = bounds;
  const effective = others.reduce(
    (least, each) => (least && each.remaining_usd < least.remaining_usd ? each : least),
    first,
  );
  return { budgets: bounds, effective_budget: effective };
}

const amounts = (limitNano: bigint, spentNano: bigint) => ({
  limit_usd: usdFromNano(limitNano),
  spend_usd: usdFromNano(spentNano),
  remaining_usd: usdFromNano(limitNano - spentNano),
});

async function budgetBound({ watch }: Dependencies["budgets"], budget: Budget): Promise<KeyBudget> {
  const { span, spentNano } = await watch.spentOf(budget);
  const { period } = basePeriodOf(budget.period);
  return {
    scope: "api_key",
    budget_id: budget.id,
    guardrail_id: null,
    ...amounts(budget.limitNano, spentNano),
    include_byok: false,
    reset_interval: period === "total" ? null : period,
    resets_at: period === "total" ? null : new Date(span.endMs).toISOString(),
  };
}

function limitBound(key: LlmKey, usage: { account: KeyAccount; nowMs: number }): KeyBudget[] {
  if (key.limitNanoUsd === null) return [];
  return [
    {
      scope: "key_limit",
      budget_id: null,
      guardrail_id: null,
      ...amounts(key.limitNanoUsd, limitSpentNano(key, usage)),
      include_byok: key.includeByokInLimit,
      reset_interval: key.limitReset ?? "monthly",
      resets_at: null,
    },
  ];
}
