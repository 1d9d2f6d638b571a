import { z } from "zod";
import type { Alert, Delivery } from "../../billing/budgets/alert-store.ts";
import {
  basePeriodOf,
  budgetActions,
  budgetPeriods,
  type BudgetPeriod,
  type Budget,
  type Span,
} from "../../billing/budgets/budget.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";

/** The public record of a budget. */
export const budgetSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("budget"),
      name: z.string(),
      scope: z.string(),
      subject: z.string().nullable(),
      period: z.enum(budgetPeriods),
      reset_day: z
        .int()
        .nullable()
        .describe("Day of the week or month on which the period starts again; null for others."),
      time_zone: z.string().describe("Time zone in which its periods begin."),
      action: z.enum(budgetActions),
      limit: z.number(),
      thresholds: z.array(z.int()),
      emails: z.array(z.string()),
      webhook_url: z.string().nullable(),
      spent: z.number(),
      period_start: z.string(),
      period_end: z.string(),
      created_at: z.string(),
      updated_at: z.string().nullable(),
    })
    .meta({ id: "Budget" }),
);

/** Returns a period as callers read it. */
export function shownPeriod(stored: BudgetPeriod) {
  const { period, resetDay } = basePeriodOf(stored);
  const hasDay = period === "weekly" || period === "monthly";
  return { period, reset_day: hasDay ? resetDay : null };
}

/** Returns the record of a budget with what was spent of it. */
export const budgetObject = (
  budget: Budget,
  { span, spentNano }: { span: Span; spentNano: bigint },
): AnswerOf<typeof budgetSchema> => ({
  id: budget.id,
  object: "budget",
  name: budget.name,
  scope: budget.scope,
  subject: budget.subject,
  ...shownPeriod(budget.period),
  time_zone: budget.timeZone ?? "UTC",
  action: budget.action,
  limit: usdFromNano(budget.limitNano),
  thresholds: [...budget.thresholds],
  emails: [...budget.emails],
  webhook_url: budget.webhookUrl,
  spent: usdFromNano(spentNano),
  period_start: new Date(span.startMs).toISOString(),
  period_end: new Date(span.endMs).toISOString(),
  created_at: new Date(budget.createdAtMs).toISOString(),
  updated_at: isoOrNull(budget.updatedAtMs),
});

/** A threshold that was reached, with the outcome of each message. */
export const alertSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("budget_alert"),
      budget_id: z.string(),
      threshold: z.int(),
      limit: z.number(),
      spent: z.number(),
      period_start: z.string(),
      at: z.string(),
      deliveries: z.array(
        z.object({
          id: z.string(),
          channel: z.enum(["email", "webhook"]),
          target: z.string(),
          status: z.enum(["pending", "delivered", "failed"]),
          attempts: z.int(),
          next_attempt_at: z.string().nullable(),
          last_status: z.int().nullable(),
          last_error: z.string().nullable(),
          ended_at: z.string().nullable(),
        }),
      ),
    })
    .meta({ id: "BudgetAlert" }),
);

/** Returns the record of an alert. */
export const alertObject = ({
  alert,
  deliveries,
}: {
  alert: Alert;
  deliveries: readonly Delivery[];
}): AnswerOf<typeof alertSchema> => ({
  id: alert.id,
  object: "budget_alert",
  budget_id: alert.budgetId,
  threshold: alert.threshold,
  limit: usdFromNano(alert.limitNano),
  spent: usdFromNano(alert.spentNano),
  period_start: new Date(alert.periodStartMs).toISOString(),
  at: new Date(alert.atMs).toISOString(),
  deliveries: deliveries.map((delivery) => ({
    id: delivery.id,
    channel: delivery.channel,
    target: delivery.target,
    status: delivery.status,
    attempts: delivery.attempts,
    next_attempt_at: isoOrNull(delivery.nextAttemptMs),
    last_status: delivery.lastStatus,
    last_error: delivery.lastError,
    ended_at: isoOrNull(delivery.endedAtMs),
  })),
});
