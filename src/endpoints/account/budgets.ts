import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { BudgetFields } from "../../billing/budgets/budget-editor.ts";
import {
  budgetActions,
  budgetPeriods,
  budgetScopes,
  periodFrom,
  tagScopePattern,
  type BudgetPeriod,
  type BudgetScope,
  type Budget,
} from "../../billing/budgets/budget.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Answer } from "../../http/reply.ts";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { nanoFromUsd } from "../../platform/kernel/money.ts";
import { isTimeZone } from "../../platform/kernel/time/zoned-days.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { lazily } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  emailField,
  nameField,
  neverCached,
  plainText,
  workspaceOf,
} from "./account-fields.ts";
import { descending, pageOf, pageQuery, placeFields, timeRank } from "./list-pages.ts";
import { alertObject, alertSchema, budgetObject, budgetSchema } from "./budget-object.ts";

const limitMaxUsd = 1_000_000;
const thresholdProblem = "must be whole percents from 1 to 1000";

/** The limit of a budget in USD. */
export const budgetLimitField = z
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

const scopeProblem = `must be one of ${budgetScopes.join(", ")}, or tag: with a name`;
const scopeField = z
  .union([z.enum(budgetScopes), z.string().regex(tagScopePattern, scopeProblem)], scopeProblem)
  .transform((scope) => scope as BudgetScope);

/** The time zone of a budget: null where it is UTC. */
export const budgetZoneField = z
  .string()
  .max(100, "must have at most 100 characters")
  .refine(isTimeZone, "must be a time zone such as Europe/Berlin")
  .transform((zone) => (zone === "UTC" ? null : zone))
  .nullish()
  .describe(
    "Time zone in which its periods begin, such as Europe/Berlin. Default: UTC. Such a budget counts what was admitted from the first " +
      "moment of its period on.",
  );

/** The body of a new budget. */
const newBudgetSchema = z.strictObject({
  name: nameField,
  scope: scopeField
    .default("workspace")
    .describe(
      "What is counted. `customer` is the end user that a request names (X-Service-Customer, safety_identifier or user), `tag:<name>` " +
        "the member of its metadata with that name.",
    ),
  subject: plainText(300)
    .trim()
    .min(1)
    .nullish()
    .describe(
      "Id of the team, key, user, model, provider or customer, or the value of the tag. `*` bounds each customer, or each value, by " +
        "itself.",
    ),
  period: z.enum(budgetPeriods, `must be one of ${budgetPeriods.join(", ")}`).default("monthly"),
  reset_day: z
    .int("must be a whole number")
    .min(1, "must be at least 1")
    .max(31, "must be at most 31")
    .nullish()
    .describe(
      "Day on which the period starts again: of the month, from 1 to 31 (the last one in shorter months), or of the week, from 1 " +
        "(Monday) to 7. Default: 1.",
    ),
  time_zone: budgetZoneField,
  action: actionField
    .default("alert")
    .describe(
      "`alert` only reports the spending. `block` also refuses, with 402, requests that would exceed the limit.",
    ),
  limit: budgetLimitField.describe("Limit in USD for one period."),
  thresholds: thresholdsField
    .default([50, 80, 100])
    .describe("Percentages of the limit at which an alert is sent."),
  emails: emailsField.default([]).describe("E-mail addresses of people in the workspace."),
  webhook_url: webhookField.default(null).describe("An https URL; its messages are signed."),
});

/** The body of a change. The budget's subject cannot be changed. */
const budgetChangesSchema = z.strictObject({
  name: nameField.optional(),
  action: actionField.optional(),
  limit: budgetLimitField.optional(),
  thresholds: thresholdsField.optional(),
  emails: emailsField.optional(),
  webhook_url: webhookField.optional(),
});

/** Returns the limit of a budget in nano-USD. */
export const limitNano = (usd: number): bigint => nanoFromUsd(usd) ?? 0n;

/** Returns the period of a new budget. Throws `bad_request` for a day that it does not have. */
export function periodOf({
  period,
  reset_day: day,
  time_zone: zone,
}: Pick<z.infer<typeof newBudgetSchema>, "period" | "reset_day" | "time_zone">): BudgetPeriod {
  if (period === "total" && typeof zone === "string")
    throw badField("time_zone", "is for budgets that start again");
  const problem =
    typeof day !== "number" || day === 1 || period === "monthly"
      ? undefined
      : period !== "weekly"
        ? "is for weekly and monthly budgets"
        : day > 7
          ? "must be from 1 (Monday) to 7 for weekly budgets"
          : undefined;
  if (problem !== undefined) throw badField("reset_day", problem);
  return periodFrom(period, day ?? 1);
}

/** Returns a new budget in the form that the account plane takes. */
const budgetFields = (body: z.infer<typeof newBudgetSchema>): BudgetFields => ({
  name: body.name,
  scope: body.scope,
  subject: body.subject ?? null,
  period: periodOf(body),
  timeZone: body.time_zone ?? null,
  action: body.action,
  limitNano: limitNano(body.limit),
  thresholds: body.thresholds,
  emails: body.emails,
  webhookUrl: body.webhook_url,
});

/** Returns the changes that were sent. Absent fields stay as they are. */
const budgetChanges = ({
  limit,
  webhook_url: webhookUrl,
  ...changes
}: z.infer<typeof budgetChangesSchema>): Partial<BudgetFields> => ({
  ...Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)),
  ...(limit === undefined ? {} : { limitNano: limitNano(limit) }),
  ...(webhookUrl === undefined ? {} : { webhookUrl }),
});

const shared = {
  base: "api",
  counting: "at-door",
  tag: "Account",
  encodeError: encodeContractError,
} as const;
const reading = { access: { managementScope: "read:analytics", session: true } } as const;
/**
 * A budget reveals spending to its recipients, so writing one needs the scope for the workspace's
 * security.
 */
const writing = {
  access: { managementScope: "write:security", session: true },
  bodyBytesMax: accountBodyBytesMax,
} as const;

const alertsMax = 100;

const referenceOf = (context: RequestContext<unknown, AccountCaller>) => ({
  workspaceId: workspaceOf(context).id,
  id: context.param("id"),
});

const shown = async ({ budgets: { watch } }: Pick<Dependencies, "budgets">, budget: Budget) =>
  budgetObject(budget, await watch.spentOf(budget));

const secretSchema = lazily(() =>
  z.object({ webhook_secret: z.string().nullable(), data: budgetSchema() }),
);

/**
 * Returns the record with the secret of its webhook, where it has one. No other answer contains the
 * secret.
 */
async function withSecret(
  context: RequestContext<unknown, AccountCaller>,
  deps: Pick<Dependencies, "budgets">,
  budget: Budget,
): Promise<Answer> {
  const secret = budget.webhookUrl === null ? null : deps.budgets.editor.secretOf(budget);
  return context.json(
    { webhook_secret: secret, data: await shown(deps, budget) },
    { headers: neverCached },
  );
}

export const createBudget = defineEndpoint({
  ...shared,
  ...writing,
  method: "POST",
  idempotent: true,
  path: "/budgets",
  summary: "Create a budget.",
  description:
    "A budget limits the spending of the workspace, or of one team, key, user, model or provider, in calendar periods. " +
    "With action `alert` it only reports the spending. With action `block` it also limits what requests may cost, as a " +
    "key's limit does: a request beyond it is refused with 402, metadata.reason budget_reached and the budget's id. " +
    "Each threshold is reported once per period, by mail to people of the workspace and by webhook. Webhook messages " +
    "are signed (X-Service-Signature: t=seconds, v1=HMAC-SHA256 of `t.body` with webhook_secret) and retried for about " +
    "nine hours.",
  body: newBudgetSchema,
  response: secretSchema,
  async handle(context, deps: Pick<Dependencies, "budgets">) {
    const budget = await deps.budgets.editor.create(
      workspaceOf(context).id,
      budgetFields(context.body),
    );
    context.changed = budget.id;
    return withSecret(context, deps, budget);
  },
});

export const listBudgets = defineEndpoint({
  ...shared,
  ...reading,
  method: "GET",
  path: "/budgets",
  summary: "List budgets.",
  description:
    "Returns each budget with its spending, newest first. Without limit, returns all; with limit, returns next_cursor, " +
    "to send as cursor for the next page.",
  query: pageQuery,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(budgetSchema()),
      ...placeFields(),
    }),
  async handle(context, deps: Pick<Dependencies, "budgets">) {
    const { data, place } = pageOf(
      await deps.budgets.editor.list(workspaceOf(context).id),
      checkBody(pageQuery, Object.fromEntries(context.query)),
      {
        idOf: ({ id }) => id,
        order: { rankOf: ({ createdAtMs, id }) => timeRank(createdAtMs, id), compare: descending },
      },
    );
    return context.json({
      object: "list",
      data: await Promise.all(data.map((budget) => shown(deps, budget))),
      ...place,
    });
  },
});

export const getBudget = defineEndpoint({
  ...shared,
  ...reading,
  method: "GET",
  path: "/budgets/:id",
  summary: "Show a budget.",
  response: budgetSchema,
  async handle(context, deps: Pick<Dependencies, "budgets">) {
    return context.json(await shown(deps, await deps.budgets.editor.find(referenceOf(context))));
  },
});

export const changeBudget = defineEndpoint({
  ...shared,
  ...writing,
  method: "PATCH",
  path: "/budgets/:id",
  summary: "Change a budget.",
  description:
    "If the limit changes, its thresholds are reported again. A new action applies from the next request.",
  body: budgetChangesSchema,
  response: budgetSchema,
  async handle(context, deps: Pick<Dependencies, "budgets">) {
    return context.json(
      await shown(
        deps,
        await deps.budgets.editor.change(referenceOf(context), budgetChanges(context.body)),
      ),
    );
  },
});

export const deleteBudget = defineEndpoint({
  ...shared,
  ...writing,
  method: "DELETE",
  path: "/budgets/:id",
  summary: "Delete a budget and its alerts.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { budgets }: Pick<Dependencies, "budgets">) {
    const reference = referenceOf(context);
    await budgets.editor.remove(reference);
    return context.json({ deleted: true, id: reference.id });
  },
});

export const rotateBudgetSecret = defineEndpoint({
  ...shared,
  ...writing,
  method: "POST",
  idempotent: true,
  path: "/budgets/:id/rotate-secret",
  summary: "Rotate the webhook secret of a budget.",
  description: "Messages are signed with the new secret from now on.",
  response: secretSchema,
  async handle(context, deps: Pick<Dependencies, "budgets">) {
    return withSecret(context, deps, await deps.budgets.editor.rotateSecret(referenceOf(context)));
  },
});

export const listBudgetAlerts = defineEndpoint({
  ...shared,
  ...reading,
  method: "GET",
  path: "/budgets/:id/alerts",
  summary: "List the alerts of a budget.",
  description: `Returns the newest ${alertsMax} with the delivery state of their messages.`,
  response: () => z.object({ object: z.literal("list"), data: z.array(alertSchema()) }),
  async handle(context, { budgets }: Pick<Dependencies, "budgets">) {
    const { id } = await budgets.editor.find(referenceOf(context));
    return context.json({
      object: "list",
      data: (await budgets.alerts.list([id], alertsMax)).map(alertObject),
    });
  },
});

export const listAlerts = defineEndpoint({
  ...shared,
  ...reading,
  method: "GET",
  path: "/budgets/alerts",
  summary: "List the alerts of all budgets.",
  description: `Returns the newest ${alertsMax} with the delivery state of their messages.`,
  response: () => z.object({ object: z.literal("list"), data: z.array(alertSchema()) }),
  async handle(context, { budgets }: Pick<Dependencies, "budgets">) {
    const ids = (await budgets.editor.list(workspaceOf(context).id)).map(({ id }) => id);
    return context.json({
      object: "list",
      data: (await budgets.alerts.list(ids, alertsMax)).map(alertObject),
    });
  },
});

const testedSchema = lazily(() =>
  z.object({
    object: z.literal("budget_test"),
    deliveries: z.array(
      z.object({
        channel: z.enum(["email", "webhook"]),
        target: z.string(),
        delivered: z.boolean(),
        status: z.int().nullable(),
        error: z.string().nullable(),
      }),
    ),
  }),
);

export const testBudgetAlert = defineEndpoint({
  ...shared,
  access: writing.access,
  method: "POST",
  path: "/budgets/:id/test",
  idempotent: true,
  summary: "Send a test alert for a budget.",
  description:
    "Sends an event budget.test to the budget's mail addresses and its webhook, signed like every other event, without " +
    "retries. Returns the outcome of each delivery.",
  response: testedSchema,
  async handle(context, { budgets }: Pick<Dependencies, "budgets">) {
    const budget = await budgets.editor.find(referenceOf(context));
    const sent = await budgets.runner.sendTest(budget);
    return context.json({
      object: "budget_test",
      deliveries: sent.map(({ channel, target, outcome }) => ({
        channel,
        target,
        delivered: outcome.ok,
        status: outcome.status,
        error: outcome.ok ? null : outcome.error,
      })),
    });
  },
});
