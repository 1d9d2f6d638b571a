import { z } from "zod";
import type { BudgetFields } from "../../account/budgets/budget-editor.ts";
import { budgetActions, budgetPeriods, budgetScopes } from "../../account/budgets/budget.ts";
import { nanoFromUsd } from "../../platform/lib/money.ts";
import { nameField, plainText } from "./account-fields.ts";
import { emailField } from "./people-fields.ts";

const limitMaxUsd = 1_000_000;
const thresholdProblem = "must be whole percents from 1 to 1000";

const limitField = z
  .number("must be USD as a number")
  .min(0.000_001, "must be at least 0.000001")
  .max(limitMaxUsd, `must be at most ${limitMaxUsd}`);
const thresholdsField = z
  .array(z.int(thresholdProblem).min(1, thresholdProblem).max(1000, thresholdProblem))
  .min(1, "must name at least one")
  .max(10, "must be at most ten")
  .transform((percents) => [...new Set(percents)].sort((one, other) => one - other));
const emailsField = z
  .array(emailField)
  .max(20, "must be at most twenty")
  .transform((emails) => [...new Set(emails)]);
const actionField = z.enum(budgetActions, `must be one of ${budgetActions.join(", ")}`);
const webhookField = plainText(2_000).min(1).nullable();

/** What is sent to make a budget. */
export const newBudgetSchema = z.strictObject({
  name: nameField,
  scope: z.enum(budgetScopes, `must be one of ${budgetScopes.join(", ")}`).default("workspace"),
  subject: plainText(300)
    .trim()
    .min(1)
    .nullish()
    .describe("Id of the key, user, model or provider."),
  period: z.enum(budgetPeriods, `must be one of ${budgetPeriods.join(", ")}`).default("monthly"),
  action: actionField
    .default("alert")
    .describe(
      "`alert` reports what is spent; `block` also refuses, with 402, what would cost more than is left.",
    ),
  limit: limitField.describe("USD for a period."),
  thresholds: thresholdsField
    .default([50, 80, 100])
    .describe("Percent of the limit at which somebody is told."),
  emails: emailsField.default([]).describe("Addresses of people in the workspace."),
  webhook_url: webhookField.default(null).describe("An https URL; messages are signed."),
});

/** What is sent to change one; what it is about stays. */
export const budgetChangesSchema = z.strictObject({
  name: nameField.optional(),
  action: actionField.optional(),
  limit: limitField.optional(),
  thresholds: thresholdsField.optional(),
  emails: emailsField.optional(),
  webhook_url: webhookField.optional(),
});

const nano = (usd: number): bigint => nanoFromUsd(usd) ?? 0n;

/** A new budget as the account plane knows it. */
export const budgetFields = (body: z.infer<typeof newBudgetSchema>): BudgetFields => ({
  name: body.name,
  scope: body.scope,
  subject: body.subject ?? null,
  period: body.period,
  action: body.action,
  limitNano: nano(body.limit),
  thresholds: body.thresholds,
  emails: body.emails,
  webhookUrl: body.webhook_url,
});

/** The changes that were sent; what was not is left as it is. */
export const budgetChanges = ({
  limit,
  webhook_url: webhookUrl,
  ...changes
}: z.infer<typeof budgetChangesSchema>): Partial<BudgetFields> => ({
  ...Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)),
  ...(limit === undefined ? {} : { limitNano: nano(limit) }),
  ...(webhookUrl === undefined ? {} : { webhookUrl }),
});
