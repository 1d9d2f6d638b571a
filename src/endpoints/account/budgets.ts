import { z } from "zod";
import type { Budget } from "../../account/budgets/budget.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Answer } from "../../http/reply.ts";
import type { Dependencies } from "../dependencies.ts";
import { workspaceOf } from "./account-caller.ts";
import { accountBodyBytesMax, neverCached } from "./account-fields.ts";
import {
  budgetChanges,
  budgetChangesSchema,
  budgetFields,
  newBudgetSchema,
} from "./budget-fields.ts";
import { alertObject, alertSchema, budgetObject, budgetSchema } from "./budget-object.ts";

const shared = {
  base: "api",
  counting: "at-door",
  tag: "Account",
  encodeError: encodeContractError,
} as const;
const reading = { access: { managementScope: "read:analytics", session: true } } as const;
/** A budget tells others what is spent, so it is for whoever looks after the workspace's security. */
const writing = {
  access: { managementScope: "write:security", session: true },
  bodyBytesMax: accountBodyBytesMax,
} as const;

const alertsMax = 100;

const referenceOf = (context: RequestContext<unknown>) => ({
  workspaceId: workspaceOf(context).id,
  id: context.param("id"),
});

const shown = async ({ budgets: { watch } }: Dependencies, budget: Budget) =>
  budgetObject(budget, await watch.spentOf(budget));

const secretSchema = z.object({ webhook_secret: z.string().nullable(), data: budgetSchema });

/** The record with the secret of its webhook, where it has one; the only answer that shows it. */
async function withSecret(
  context: RequestContext<unknown>,
  deps: Dependencies,
  budget: Budget,
): Promise<Answer> {
  const secret = budget.webhookUrl === null ? null : deps.budgets.editor.secretOf(budget);
  return context.json(
    { webhook_secret: secret, data: await shown(deps, budget) },
    { headers: neverCached },
  );
}

/** Makes a budget. */
export const createBudget = defineEndpoint<Dependencies, z.infer<typeof newBudgetSchema>>({
  ...shared,
  ...writing,
  method: "POST",
  idempotent: true,
  path: "/budgets",
  summary: "Make a budget that reports when it is spent, or blocks what would cost more.",
  description:
    "Of the workspace, a key, a user, a model or a provider, by calendar periods (UTC). " +
    "With action `block` it bounds what requests may " +
    "cost as a key's limit does: none is served past it, and the refusal is 402 with metadata.reason budget_reached and the budget's id. " +
    "Each threshold is reported once a period, by mail to people of the workspace and by a webhook whose messages are signed " +
    "(X-Service-Signature: t=seconds, v1=HMAC-SHA256 of `t.body` with webhook_secret) and tried again for some nine hours.",
  body: newBudgetSchema,
  response: secretSchema,
  async handle(context, deps) {
    const budget = await deps.budgets.editor.create(
      workspaceOf(context).id,
      budgetFields(context.body),
    );
    context.changed = budget.id;
    return withSecret(context, deps, budget);
  },
});

/** Lists the budgets of the workspace. */
export const listBudgets = defineEndpoint<Dependencies>({
  ...shared,
  ...reading,
  method: "GET",
  path: "/budgets",
  summary: "List budgets with what is spent of them.",
  response: z.object({ object: z.literal("list"), data: z.array(budgetSchema) }),
  async handle(context, deps) {
    const budgets = await deps.budgets.editor.list(workspaceOf(context).id);
    return context.json({
      object: "list",
      data: await Promise.all(budgets.map((budget) => shown(deps, budget))),
    });
  },
});

/** Shows one budget. */
export const getBudget = defineEndpoint<Dependencies>({
  ...shared,
  ...reading,
  method: "GET",
  path: "/budgets/:id",
  summary: "Show a budget with what is spent of it.",
  response: budgetSchema,
  async handle(context, deps) {
    return context.json(await shown(deps, await deps.budgets.editor.find(referenceOf(context))));
  },
});

/** Changes a budget. */
export const changeBudget = defineEndpoint<Dependencies, z.infer<typeof budgetChangesSchema>>({
  ...shared,
  ...writing,
  method: "PATCH",
  path: "/budgets/:id",
  summary: "Change a budget.",
  description:
    "With another limit its thresholds are reported again. A change of action holds for the next request.",
  body: budgetChangesSchema,
  response: budgetSchema,
  async handle(context, deps) {
    return context.json(
      await shown(
        deps,
        await deps.budgets.editor.change(referenceOf(context), budgetChanges(context.body)),
      ),
    );
  },
});

/** Deletes a budget with its alerts. */
export const deleteBudget = defineEndpoint<Dependencies>({
  ...shared,
  ...writing,
  method: "DELETE",
  path: "/budgets/:id",
  summary: "Delete a budget with its alerts.",
  response: z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { budgets }) {
    const reference = referenceOf(context);
    await budgets.editor.remove(reference);
    return context.json({ deleted: true, id: reference.id });
  },
});

/** Gives the webhook of a budget another secret. */
export const rotateBudgetSecret = defineEndpoint<Dependencies>({
  ...shared,
  ...writing,
  method: "POST",
  idempotent: true,
  path: "/budgets/:id/rotate-secret",
  summary: "Give a budget's webhook another secret.",
  description: "Messages are signed with the new one from now on.",
  response: secretSchema,
  async handle(context, deps) {
    return withSecret(context, deps, await deps.budgets.editor.rotateSecret(referenceOf(context)));
  },
});

/** Lists the alerts of a budget and what became of their messages. */
export const listBudgetAlerts = defineEndpoint<Dependencies>({
  ...shared,
  ...reading,
  method: "GET",
  path: "/budgets/:id/alerts",
  summary: "List a budget's alerts and what became of their messages.",
  description: `The newest ${alertsMax}.`,
  response: z.object({ object: z.literal("list"), data: z.array(alertSchema) }),
  async handle(context, { budgets }) {
    const { id } = await budgets.editor.find(referenceOf(context));
    return context.json({
      object: "list",
      data: (await budgets.alerts.list([id], alertsMax)).map(alertObject),
    });
  },
});

/** Lists the alerts of every budget of the workspace. */
export const listAlerts = defineEndpoint<Dependencies>({
  ...shared,
  ...reading,
  method: "GET",
  path: "/budgets/alerts",
  summary: "List the alerts of all budgets and what became of their messages.",
  description: `The newest ${alertsMax}.`,
  response: z.object({ object: z.literal("list"), data: z.array(alertSchema) }),
  async handle(context, { budgets }) {
    const ids = (await budgets.editor.list(workspaceOf(context).id)).map(({ id }) => id);
    return context.json({
      object: "list",
      data: (await budgets.alerts.list(ids, alertsMax)).map(alertObject),
    });
  },
});

const testedSchema = z.object({
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
});

/** Sends a test to whoever a budget alerts. */
export const testBudgetAlert = defineEndpoint<Dependencies>({
  ...shared,
  access: writing.access,
  method: "POST",
  path: "/budgets/:id/test",
  idempotent: true,
  summary: "Send a test alert of a budget.",
  description:
    "To its mail addresses and its webhook, as an event budget.test, signed as every other; once, without another try. " +
    "The answer tells what became of each.",
  response: testedSchema,
  async handle(context, { budgets }) {
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
