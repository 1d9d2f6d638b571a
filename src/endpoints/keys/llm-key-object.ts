import { z } from "zod";
import { countedWithin, type KeyAccount } from "../../billing/ledger/book/account-book.ts";
import type { RollingSpend } from "../../billing/ledger/rolling-spend.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { EndpointPaths } from "../../http/endpoint-paths.ts";
import {
  limitWindowHours,
  type LimitReset,
  type LlmKey,
} from "../../identity/keys/llm-key-store.ts";
import type { Workspace } from "../../identity/workspaces/workspace-store.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { nanoFromUsd, usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { expiryMs, momentField, nameField } from "../account/account-fields.ts";

/** A spending limit in USD, within the range that is counted exactly. */
export const limitField = z.number().nonnegative().max(9_000_000);

/** The window that a limit is measured over. */
export const limitResetField = z.enum(["daily", "weekly", "monthly"]);

/** Requests per minute. */
export const rateLimitField = z.int().positive();

/**
 * Returns a limit in nano-USD; null where there is none. An amount too small to be written in
 * digits is zero, not unlimited.
 */
export const limitNano = (usd: number | null | undefined): bigint | null =>
  typeof usd === "number" ? (nanoFromUsd(usd) ?? 0n) : null;

/** Tokens per minute. */
export const tokensPerMinuteField = z.int().positive();

/** The most USD of each run that a key opens. */
export const runLimitField = limitField
  .nullish()
  .describe(
    "The most USD of each run that the key opens with POST /runs or X-Service-Run. Null: what the key itself has.",
  );

/** What a key may do; every key does inference. */
const keyScopesField = z
  .array(z.enum(["inference", "passthrough"]))
  .describe("`passthrough`: the key may call providers' own routes at /p/{provider}/...");

/** The models that a key may use. */
export const allowedModelsField = z.array(z.string().min(1));

/** The paths that a key may call. */
export const allowedEndpointsField = z
  .array(z.string().min(1))
  .describe(
    "Paths of this API, with or without /api/v1, with parameters as {id} or :id. An empty list allows every endpoint.",
  );

/** The tools of MCP servers that a key may use. */
export const allowedToolsField = z
  .array(z.string().min(1).max(300))
  .max(1_000)
  .describe(
    "Servers and tools of MCP (`server` or `server/tool`) that the key may use. Null allows all, an empty list none.",
  );

/** Returns model ids as keys keep them; null where every model is allowed. */
export const allowedModelsOf = (
  ids: readonly string[] | null | undefined,
): readonly string[] | null => ids?.map((id) => id.toLowerCase()) ?? null;

/**
 * Returns paths as keys keep and show them, such as `/api/v1/responses/{id}`, each once; null where
 * every endpoint is allowed. Throws `bad_request` that names an entry which is not an endpoint's
 * path.
 */
export function allowedEndpointsOf(
  entries: readonly string[] | null | undefined,
  paths: EndpointPaths,
): readonly string[] | null {
  if (entries === null || entries === undefined) return null;
  return [
    ...new Set(
      entries.map((entry, index) => paths.find(entry) ?? noSuchEndpoint(entry, { index, paths })),
    ),
  ];
}

function noSuchEndpoint(
  entry: string,
  { index, paths }: { index: number; paths: EndpointPaths },
): never {
  const param = `allowed_endpoints[${index}]`;
  const closest = paths.closest(entry);
  const hint = closest === undefined ? "the list of paths is at /docs" : `did you mean ${closest}?`;
  throw badField(param, `there is no endpoint ${entry.slice(0, 200)}; ${hint}`);
}

/** Whether a key has an operator's rights. */
export const operatorField = z
  .boolean()
  .describe(
    "Whether the key may use the MCP server's tools for operators. Only operators give it, to keys of their personal workspace, " +
      "within 15 minutes after signing in. Any rotation, and any other caller's change, takes it away.",
  );

/** The team of a key. */
export const teamIdField = z
  .string()
  .min(1)
  .max(100)
  .nullish()
  .describe(
    "Id of the team that the key belongs to: its budget and its models bound the key, and those that the key creates. A person with " +
      "the role member who is in a team creates keys there; without this field, in the team joined first. Null: no team.",
  );

/** The body of a new LLM key. Null means the default, in every field that has one. */
export const newKeySchema = z.object({
  name: nameField,
  expires_at: momentField.nullish(),
  limit: limitField.nullish(),
  limit_reset: limitResetField.nullish(),
  include_byok_in_limit: z.boolean().nullish(),
  rate_limit: rateLimitField.nullish(),
  disabled: z.boolean().nullish(),
  allowed_models: allowedModelsField.nullish(),
  allowed_endpoints: allowedEndpointsField.nullish(),
  allowed_tools: allowedToolsField.nullish(),
  tpm: tokensPerMinuteField.nullish(),
  run_limit: runLimitField,
  scopes: keyScopesField.nullish(),
  operator: operatorField.nullish(),
  team_id: teamIdField,
});

/** A body that `newKeySchema` has checked. */
export type NewKeyBody = z.infer<typeof newKeySchema>;

/**
 * Returns the key that a body describes. Throws `bad_request` where it would have expired already,
 * or names a path that no endpoint has.
 */
export const newKeyFieldsOf = (
  body: NewKeyBody,
  { nowMs, endpointPaths }: { nowMs: number; endpointPaths: EndpointPaths },
) =>
  ({
    name: body.name,
    expiresAtMs: expiryMs(body.expires_at, nowMs),
    limitNanoUsd: limitNano(body.limit),
    limitReset: body.limit_reset ?? null,
    includeByokInLimit: body.include_byok_in_limit ?? false,
    rateLimitPerMinute: body.rate_limit ?? null,
    disabled: body.disabled ?? false,
    allowedModels: allowedModelsOf(body.allowed_models),
    allowedEndpoints: allowedEndpointsOf(body.allowed_endpoints, endpointPaths),
    allowedTools: body.allowed_tools ?? null,
    tokensPerMinute: body.tpm ?? null,
    ...(typeof body.run_limit === "number" && { runLimitNano: limitNano(body.run_limit) }),
    ...(body.scopes?.includes("passthrough") && { passthrough: true as const }),
  }) satisfies Partial<LlmKey>;

const usd = z.number();

/** The schemas of what `spendOf` returns. */
export const spendFields = lazily(() => ({
  usage: usd.describe("Total spend of the key from credits, in USD."),
  usage_daily: usd.describe("Spend from credits in the last 24 hours, in USD."),
  usage_weekly: usd.describe("Spend from credits in the last 7 days, in USD."),
  usage_monthly: usd.describe("Spend from credits in the last 30 days, in USD."),
  byok_usage: usd.describe(
    "Total list price of the key's requests with the workspace's own provider keys, in USD.",
  ),
  byok_usage_daily: usd.describe("The same for the last 24 hours."),
  byok_usage_weekly: usd.describe("The same for the last 7 days."),
  byok_usage_monthly: usd.describe("The same for the last 30 days."),
}));

/** The LLM key record of the contract, and what OpenRouter's clients require of it besides. */
export const llmKeyObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      hash: z.string(),
      name: z.string(),
      label: z.string(),
      created_at: z.string(),
      updated_at: z.string().nullable(),
      expires_at: z.string().nullable(),
      disabled: z.boolean(),
      real_usage: z.number(),
      real_usage_daily: z.number(),
      real_usage_weekly: z.number(),
      real_usage_monthly: z.number(),
      real_usage_monthly_requests: z.number(),
      ...spendFields(),
      limit: z.number().nullable(),
      limit_remaining: z.number().nullable(),
      limit_reset: z.enum(["daily", "weekly", "monthly"]).nullable(),
      include_byok_in_limit: z.boolean(),
      rate_limit: z.number(),
      is_free_tier: z.boolean(),
      is_management_key: z.boolean(),
      creator_user_id: z.string(),
      last_used_at: z.string().nullable(),
      allowed_models: z.array(z.string()).nullable(),
      allowed_endpoints: z.array(z.string()).nullable(),
      allowed_tools: z.array(z.string()).nullable(),
      tpm: z.number().nullable(),
      run_limit: z
        .number()
        .nullable()
        .describe("The most USD of each run that the key opens; null without a bound of its own."),
      scopes: z
        .array(z.enum(["inference", "passthrough"]))
        .describe("What the key may do: inference, and calling providers' own routes."),
      operator: z.boolean().describe("Whether the key may use the tools for operators."),
      workspace_id: z.string(),
      team_id: z
        .string()
        .nullable()
        .describe("Id of the team that the key belongs to; null for none."),
      external_user: z
        .string()
        .nullable()
        .describe("The external_id of the customer whose key it is; null for others."),
      parent_key_id: z
        .string()
        .optional()
        .describe("Id of the parent key, if another key created this one."),
    })
    .meta({ id: "LlmKey" }),
);

/** The usage of a key, beside its record. */
interface KeyUsage {
  account: KeyAccount;
  /** What it spent together with its open runs. */
  spent: ReturnType<typeof usageOf>;
  lastUsedAtMs: number | null;
  monthlyRequests: number;
  planRateLimitPerMinute: number;
  isFreeTier: boolean;
  /** The team of the key that created it. */
  parentTeamId: string | null | undefined;
  nowMs: number;
  endpointPaths: EndpointPaths;
}

/** Returns what is left of a key's limit within its window, in USD; null without a limit. */
export function limitRemaining(
  key: LlmKey,
  { account, nowMs }: Pick<KeyUsage, "account" | "nowMs">,
): number | null {
  if (key.limitNanoUsd === null) return null;
  const spent = limitSpentNano(key, { account, nowMs }) + account.allocatedNano;
  return usdFromNano(key.limitNanoUsd > spent ? key.limitNanoUsd - spent : 0n);
}

/** Returns the nano-USD that count towards a key's limit in its window. */
export const limitSpentNano = (
  key: LlmKey,
  { account, nowMs }: Pick<KeyUsage, "account" | "nowMs">,
): bigint =>
  countedWithin(account, {
    windowHours: limitWindowHours(key.limitReset),
    countsByok: key.includeByokInLimit,
    nowMs,
  });

/**
 * Returns a key's `allowed_endpoints` as callers write paths. Entries of older keys that no
 * endpoint has are shown as they were given.
 */
export const shownEndpoints = (
  allowed: readonly string[] | null,
  paths: EndpointPaths,
): string[] | null => allowed && [...new Set(allowed.map((entry) => paths.find(entry) ?? entry))];

/** Spending over time: its total, and what a window of hours has. */
type SpendOverTime = Pick<RollingSpend, "total" | "spentWithin">;

/** Returns the sum of several spendings. */
const together = (all: readonly SpendOverTime[]): SpendOverTime => ({
  total: all.reduce((sum, { total }) => sum + total, 0n),
  spentWithin: (windowHours, nowMs) =>
    all.reduce((sum, each) => sum + each.spentWithin(windowHours, nowMs), 0n),
});

/**
 * Returns what a key spent together with its open runs and those of its child keys, which its own
 * sum has once they have ended.
 */
export function usageOf(
  key: Pick<LlmKey, "id">,
  { ledger: { book }, directory }: Pick<Dependencies, "ledger" | "directory">,
): { spend: SpendOverTime; byok?: SpendOverTime | undefined } {
  const own = book.key(key.id);
  const open = [key, ...directory.childrenOf(key.id)]
    .flatMap(({ id }) => directory.runsOf(id))
    .filter(({ releasedAtMs }) => releasedAtMs === null);
  if (open.length === 0) return own;
  const all = [own, ...open.map(({ id }) => book.key(id))];
  return {
    spend: together(all.map(({ spend }) => spend)),
    byok: together(all.flatMap(({ byok }) => byok ?? [])),
  };
}

/** Returns spending under OpenRouter's names, over rolling windows. */
export function spendOf(
  { spend, byok }: { spend: SpendOverTime; byok?: SpendOverTime | undefined },
  nowMs: number,
): Record<keyof ReturnType<typeof spendFields>, number> {
  const within = (rolling: SpendOverTime | undefined, window: LimitReset): number =>
    usdFromNano(rolling?.spentWithin(limitWindowHours(window), nowMs) ?? 0n);
  return {
    usage: usdFromNano(spend.total),
    usage_daily: within(spend, "daily"),
    usage_weekly: within(spend, "weekly"),
    usage_monthly: within(spend, "monthly"),
    byok_usage: usdFromNano(byok?.total ?? 0n),
    byok_usage_daily: within(byok, "daily"),
    byok_usage_weekly: within(byok, "weekly"),
    byok_usage_monthly: within(byok, "monthly"),
  };
}

/** Returns the public record of a key. */
function llmKeyObject(key: LlmKey, usage: KeyUsage): AnswerOf<typeof llmKeyObjectSchema> {
  const { nowMs } = usage;
  const { spend } = usage.spent;
  const spent = (window: LimitReset): number =>
    usdFromNano(spend.spentWithin(limitWindowHours(window), nowMs));
  return {
    id: key.id,
    hash: key.hash,
    name: key.name,
    label: key.label,
    created_at: new Date(key.createdAtMs).toISOString(),
    updated_at: isoOrNull(key.updatedAtMs),
    expires_at: isoOrNull(key.expiresAtMs),
    disabled: key.disabled,
    real_usage: usdFromNano(spend.total),
    real_usage_daily: spent("daily"),
    real_usage_weekly: spent("weekly"),
    real_usage_monthly: spent("monthly"),
    real_usage_monthly_requests: usage.monthlyRequests,
    ...spendOf(usage.spent, nowMs),
    limit: key.limitNanoUsd === null ? null : usdFromNano(key.limitNanoUsd),
    limit_remaining: limitRemaining(key, usage),
    limit_reset: key.limitReset,
    include_byok_in_limit: key.includeByokInLimit,
    rate_limit: key.rateLimitPerMinute ?? usage.planRateLimitPerMinute,
    is_free_tier: usage.isFreeTier,
    is_management_key: false,
    creator_user_id: key.creatorUserId,
    last_used_at: isoOrNull(usage.lastUsedAtMs),
    allowed_models: key.allowedModels === null ? null : [...key.allowedModels],
    allowed_endpoints: shownEndpoints(key.allowedEndpoints, usage.endpointPaths),
    allowed_tools: key.allowedTools ? [...key.allowedTools] : null,
    tpm: key.tokensPerMinute,
    run_limit: typeof key.runLimitNano === "bigint" ? usdFromNano(key.runLimitNano) : null,
    scopes: ["inference" as const, ...(key.passthrough ? ["passthrough" as const] : [])],
    operator: key.operatorUserId !== undefined,
    workspace_id: key.workspaceId,
    team_id: key.teamId ?? usage.parentTeamId ?? null,
    external_user: key.customer ?? null,
    ...(key.parentKeyId === undefined ? {} : { parent_key_id: key.parentKeyId }),
  };
}

/** The parts that show a key with its spending. */
export type KeyObjectServices = Pick<
  Dependencies,
  "ledger" | "ledgerStore" | "directory" | "counters" | "endpointPaths" | "clock"
>;

/** Returns the public records of keys of one workspace. */
export async function keyObjects(
  deps: KeyObjectServices,
  { workspace, keys }: { workspace: Workspace; keys: readonly LlmKey[] },
): Promise<AnswerOf<typeof llmKeyObjectSchema>[]> {
  const nowMs = deps.clock.nowMs();
  await deps.ledger.refresh(workspace.id);
  const requests = await deps.ledgerStore.monthlyRequests(workspace.id, nowMs);
  const planRateLimitPerMinute = deps.counters.tiers.tierFor(workspace.plan, "paid").perMinute;
  return keys.map((key) =>
    llmKeyObject(key, {
      account: deps.ledger.book.key(key.id),
      spent: usageOf(key, deps),
      lastUsedAtMs: deps.directory.uses.lastUsedAtMs(key.id),
      monthlyRequests: requests.get(key.id) ?? 0,
      planRateLimitPerMinute,
      isFreeTier: workspace.plan === "free",
      parentTeamId: deps.directory.llmKeyById(key.parentKeyId ?? "")?.teamId,
      nowMs,
      endpointPaths: deps.endpointPaths,
    }),
  );
}

/** Returns the public record of one key. */
export async function keyObject(
  deps: KeyObjectServices,
  { workspace, key }: { workspace: Workspace; key: LlmKey },
): Promise<AnswerOf<typeof llmKeyObjectSchema> | undefined> {
  const [data] = await keyObjects(deps, { workspace, keys: [key] });
  return data;
}
