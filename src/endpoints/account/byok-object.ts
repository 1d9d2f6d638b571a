import { z } from "zod";
import { keySources, type ProviderKey } from "../../account/byok/provider-key.ts";
import { isoOrNull } from "../../platform/lib/clock.ts";
import { usdFromNano } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";

/** The BYOK provider key record of the contract, with what it leaves open. The key itself is never shown. */
export const providerKeyObjectSchema = z
  .object({
    id: z.string(),
    provider_id: z.string(),
    label: z.string(),
    key_preview: z.string(),
    enabled: z.boolean(),
    route_coverage: z.literal("all"),
    kind: z.enum(["byok", "donated"]),
    source: z.enum(keySources),
    status: z.enum(["active", "disabled", "refused", "exhausted", "paused"]),
    quota: z
      .object({
        limit: z.number(),
        used: z.number(),
        reset: z.enum(["daily", "weekly", "monthly"]).nullable(),
      })
      .nullable(),
    donation: z
      .object({
        donated_at: z.string(),
        daily_limit: z.number().nullable(),
        used_today: z.number(),
        paused: z.boolean(),
        pause_reason: z.enum(["credential", "owner"]).nullable(),
      })
      .nullable(),
    created_at: z.string(),
    updated_at: z.string().nullable(),
    last_used_at: z.string().nullable(),
  })
  .meta({ id: "ProviderKey" });

/** The public record of a provider key. */
export function providerKeyObject(
  key: ProviderKey,
  { providerKeys, providerKeyUsage: usage, directory }: Dependencies,
): z.infer<typeof providerKeyObjectSchema> {
  const { quota, donation } = key;
  return {
    id: key.id,
    provider_id: key.providerId,
    label: key.label,
    key_preview: key.preview,
    enabled: key.enabled,
    route_coverage: "all",
    kind: donation === null ? "byok" : "donated",
    source: key.source,
    status: providerKeys.statusOf(key),
    quota: quota && {
      limit: usdFromNano(quota.limitNano),
      used: usdFromNano(usage.usedOf(key)),
      reset: quota.reset,
    },
    donation: donation && {
      donated_at: new Date(donation.donatedAtMs).toISOString(),
      daily_limit: donation.dailyLimitNano === null ? null : usdFromNano(donation.dailyLimitNano),
      used_today: usdFromNano(usage.poolUsedOf(key)),
      paused: donation.paused !== null,
      pause_reason: donation.paused,
    },
    created_at: new Date(key.createdAtMs).toISOString(),
    updated_at: isoOrNull(key.updatedAtMs),
    last_used_at: isoOrNull(directory.uses.lastUsedAtMs(key.id)),
  };
}
