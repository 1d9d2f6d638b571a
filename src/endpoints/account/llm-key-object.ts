import { z } from "zod";
import { limitWindowHours, type LimitReset, type LlmKey } from "../../account/keys/llm-key.ts";
import { countedWithin, type KeyAccount } from "../../account/ledger/account-book.ts";
import type { Workspace } from "../../account/workspaces/workspace.ts";
import { isoOrNull } from "../../platform/lib/clock.ts";
import { usdFromNano } from "../../platform/lib/money.ts";
import type { EndpointPaths } from "../../http/endpoint-paths.ts";
import type { Dependencies } from "../dependencies.ts";

/** The LLM key record as the contract has it. */
export const llmKeyObjectSchema = z
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
    tpm: z.number().nullable(),
    parent_key_id: z.string().optional().describe("The key that made this one, where one did."),
  })
  .meta({ id: "LlmKey" });

/** What a key has used and may use, beside its record. */
export interface KeyUsage {
  account: KeyAccount;
  lastUsedAtMs: number | null;
  monthlyRequests: number;
  planRateLimitPerMinute: number;
  isFreeTier: boolean;
  nowMs: number;
  endpointPaths: EndpointPaths;
}

/** What is left of a key's limit within its window, in USD; null without a limit. */
export function limitRemaining(
  key: LlmKey,
  { account, nowMs }: Pick<KeyUsage, "account" | "nowMs">,
): number | null {
  if (key.limitNanoUsd === null) return null;
  const spent = countedWithin(account, {
    windowHours: limitWindowHours(key.limitReset),
    countsByok: key.includeByokInLimit,
    nowMs,
  });
  return usdFromNano(key.limitNanoUsd > spent ? key.limitNanoUsd - spent : 0n);
}

/** A key's `allowed_endpoints` as callers write paths; entries of older keys that no endpoint has are shown as they were given. */
export const shownEndpoints = (
  allowed: readonly string[] | null,
  paths: EndpointPaths,
): string[] | null => allowed && [...new Set(allowed.map((entry) => paths.find(entry) ?? entry))];

/** The public record of a key. */
export function llmKeyObject(key: LlmKey, usage: KeyUsage): z.infer<typeof llmKeyObjectSchema> {
  const { account, nowMs } = usage;
  const spent = (window: LimitReset): number =>
    usdFromNano(account.spend.spentWithin(limitWindowHours(window), nowMs));
  return {
    id: key.id,
    hash: key.hash,
    name: key.name,
    label: key.label,
    created_at: new Date(key.createdAtMs).toISOString(),
    updated_at: isoOrNull(key.updatedAtMs),
    expires_at: isoOrNull(key.expiresAtMs),
    disabled: key.disabled,
    real_usage: usdFromNano(account.spend.total),
    real_usage_daily: spent("daily"),
    real_usage_weekly: spent("weekly"),
    real_usage_monthly: spent("monthly"),
    real_usage_monthly_requests: usage.monthlyRequests,
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
    tpm: key.tokensPerMinute,
    ...(key.parentKeyId === undefined ? {} : { parent_key_id: key.parentKeyId }),
  };
}

/** The public records of keys of one workspace. */
export async function keyObjects(
  deps: Dependencies,
  { workspace, keys }: { workspace: Workspace; keys: readonly LlmKey[] },
): Promise<z.infer<typeof llmKeyObjectSchema>[]> {
  const nowMs = deps.clock.nowMs();
  await deps.ledger.refresh(workspace.id);
  const requests = await deps.ledgerStore.monthlyRequests(workspace.id, nowMs);
  const planRateLimitPerMinute = deps.counters.tiers.tierFor(workspace.plan, "paid").perMinute;
  return keys.map((key) =>
    llmKeyObject(key, {
      account: deps.ledger.book.key(key.id),
      lastUsedAtMs: deps.directory.uses.lastUsedAtMs(key.id),
      monthlyRequests: requests.get(key.id) ?? 0,
      planRateLimitPerMinute,
      isFreeTier: workspace.plan === "free",
      nowMs,
      endpointPaths: deps.endpointPaths,
    }),
  );
}

/** The public record of one key. */
export async function keyObject(
  deps: Dependencies,
  { workspace, key }: { workspace: Workspace; key: LlmKey },
): Promise<z.infer<typeof llmKeyObjectSchema> | undefined> {
  const [data] = await keyObjects(deps, { workspace, keys: [key] });
  return data;
}
