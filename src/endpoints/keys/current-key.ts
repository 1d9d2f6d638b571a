import { z } from "zod";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Workspace } from "../../identity/workspaces/workspace-store.ts";
import type { LlmKey } from "../../identity/keys/llm-key-store.ts";
import { narrowedTier } from "../../access/rate-limiter.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { dayMs, isoOrNull } from "../../platform/kernel/clock.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { keyBudgetFields, keyBudgets } from "./key-budgets.ts";
import { limitRemaining, spendFields, spendOf, usageOf } from "./llm-key-object.ts";

/**
 * Returns a key's effective requests per minute: a limit of its own above the plan's does not widen
 * it.
 */
const effectiveRateLimit = (
  { counters: { tiers } }: Pick<Dependencies, "counters">,
  { key, workspace }: Pick<LlmKeyCaller, "key" | "workspace">,
): number => narrowedTier(tiers.tierFor(workspace.plan, "paid"), key.rateLimitPerMinute).perMinute;

/** Describes the calling LLM key, in the compact form. */
export const authKey = defineEndpoint({
  method: "GET",
  path: "/auth/key",
  base: "api",
  access: { llmKey: true, ofItself: true },
  counting: "at-door",
  summary: "Show the calling LLM key.",
  tag: "Account",
  response: () =>
    z.object({
      key: z.object({
        prefix: z.string(),
        name: z.string(),
        created_at: z.string(),
        rate_limit: z.number(),
        usage: z.number(),
        limit: z.number().nullable(),
        is_free_tier: z.boolean(),
      }),
    }),
  encodeError: encodeContractError,
  async handle(context, deps: Pick<Dependencies, "ledger" | "counters">) {
    const { ledger } = deps;
    const { key, workspace } = context.caller;
    await ledger.refresh(workspace.id);
    return context.json({
      key: {
        prefix: key.label,
        name: key.name,
        created_at: new Date(key.createdAtMs).toISOString(),
        rate_limit: effectiveRateLimit(deps, { key, workspace }),
        usage: usdFromNano(ledger.book.key(key.id).spend.total),
        limit: key.limitNanoUsd === null ? null : usdFromNano(key.limitNanoUsd),
        is_free_tier: workspace.plan === "free",
      },
    });
  },
});

async function newestActiveKey(
  { llmKeys, clock }: Pick<Dependencies, "llmKeys" | "clock">,
  workspaceId: string,
): Promise<LlmKey> {
  const keys = await llmKeys.list(workspaceId, { includeDisabled: false });
  const active = keys.find(
    (key) =>
      key.connection === undefined && (key.expiresAtMs === null || key.expiresAtMs > clock.nowMs()),
  );
  if (active === undefined)
    throw new GatewayError("not_found", "The workspace has no active LLM key.");
  return active;
}

const minutesADay = 24 * 60;

const usd = z.number();

const currentKeySchema = lazily(() =>
  z
    .object({
      label: z.string().describe("Masked form of the secret."),
      limit: usd.nullable().describe("Spending limit in USD; null without a limit."),
      limit_remaining: usd.nullable().describe("Remainder of the limit in its window."),
      limit_reset: z
        .enum(["daily", "weekly", "monthly"])
        .nullable()
        .describe("Window of the limit; null means 30 days."),
      include_byok_in_limit: z
        .boolean()
        .describe("Whether usage of the workspace's own provider keys counts towards the limit."),
      ...spendFields(),
      ...keyBudgetFields(),
      is_free_tier: z.boolean().describe("Whether the workspace is on the free plan."),
      is_management_key: z.literal(false).describe("Always false: the key is an LLM key."),
      is_provisioning_key: z.literal(false).describe("Always false; a copy of is_management_key."),
      operator: z.boolean().describe("Whether the key may use the tools for operators."),
      creator_user_id: z.string().describe("Id of the key's creator."),
      workspace_id: z.string().describe("Id of the workspace that the key spends from."),
      organization_id: z
        .string()
        .nullable()
        .describe("Id of the workspace's organisation; null for a personal workspace."),
      expires_at: z
        .string()
        .nullable()
        .describe("When the key expires, ISO 8601; null if it does not expire."),
      allowed_data_regions: z
        .array(z.literal("global"))
        .describe("Regions that the key may use; global is the only one."),
      free_model_daily_requests: z
        .object({
          limit: z
            .int()
            .describe(
              "Requests to free models that the rate limit allows in a day; there is no separate daily quota.",
            ),
          used: z
            .int()
            .describe("Requests of the workspace to free models since the day began (UTC)."),
          remaining: z.int().describe("Difference of limit and used."),
        })
        .describe("Quota for models whose id ends with :free."),
      rate_limit: z
        .object({
          requests: z.int().describe("Requests allowed in the window."),
          interval: z.string().describe("Length of the window."),
          note: z.string().describe("Explanation of the values."),
        })
        .describe("Rate limit of the key."),
    })
    .meta({ id: "CurrentKey" }),
);

const currentRateNote = "Requests of this key in any 60 seconds, to paid models.";

/**
 * Returns the requests to free models since the UTC day began, and how many the rate limit allows
 * in a day.
 */
async function freeRequestsToday(
  { insights, clock, counters }: Pick<Dependencies, "insights" | "counters" | "clock">,
  { id, plan }: Workspace,
) {
  const fromMs = Math.floor(clock.nowMs() / dayMs) * dayMs;
  const lines = await insights.counters.sums({
    workspaceId: id,
    fromMs,
    toMs: fromMs + dayMs,
    interval: "day",
    groupBy: ["model"],
  });
  const used = (lines ?? []).reduce(
    (sum, { model, requests }) => sum + (model?.endsWith(":free") ? requests : 0),
    0,
  );
  const limit = counters.tiers.tierFor(plan, "free-model").perMinute * minutesADay;
  return { limit, used, remaining: Math.max(0, limit - used) };
}

async function currentKeyObject(
  deps: Pick<Dependencies, "ledger" | "directory" | "insights" | "budgets" | "counters" | "clock">,
  { key, workspace }: Pick<LlmKeyCaller, "key" | "workspace">,
): Promise<AnswerOf<typeof currentKeySchema>> {
  await deps.ledger.refresh(workspace.id);
  const account = deps.ledger.book.key(key.id);
  const nowMs = deps.clock.nowMs();
  return {
    label: key.label,
    limit: key.limitNanoUsd === null ? null : usdFromNano(key.limitNanoUsd),
    limit_remaining: limitRemaining(key, { account, nowMs }),
    limit_reset: key.limitReset,
    include_byok_in_limit: key.includeByokInLimit,
    ...spendOf(usageOf(key, deps), nowMs),
    ...(await keyBudgets(deps, key, { account, nowMs })),
    is_free_tier: workspace.plan === "free",
    is_management_key: false,
    is_provisioning_key: false,
    operator: key.operatorUserId !== undefined,
    creator_user_id: key.creatorUserId,
    workspace_id: workspace.id,
    organization_id: workspace.organizationId ?? null,
    expires_at: isoOrNull(key.expiresAtMs),
    allowed_data_regions: ["global"],
    free_model_daily_requests: await freeRequestsToday(deps, workspace),
    rate_limit: {
      requests: effectiveRateLimit(deps, { key, workspace }),
      interval: "60s",
      note: currentRateNote,
    },
  };
}

/**
 * Describes the current key in OpenRouter's form: the calling LLM key, or the workspace's newest
 * active one.
 */
export const currentKey = defineEndpoint({
  method: "GET",
  path: "/key",
  base: "api",
  access: { llmKey: true, ofItself: true, managementScope: "read:llm-keys", session: true },
  counting: "at-door",
  summary: "Show the current key in OpenRouter's format.",
  tag: "Account",
  response: () => z.object({ data: currentKeySchema() }),
  encodeError: encodeContractError,
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "ledger" | "llmKeys" | "directory" | "insights" | "budgets" | "counters" | "clock"
    >,
  ) {
    const caller = context.caller;
    const key =
      caller.kind === "llm-key" ? caller.key : await newestActiveKey(deps, caller.workspace.id);
    return context.json({
      data: await currentKeyObject(deps, { key, workspace: caller.workspace }),
    });
  },
});
