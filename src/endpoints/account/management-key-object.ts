import { z } from "zod";
import { managementKeyStatus, type ManagementKey } from "../../account/keys/management-key.ts";
import { isoOrNull } from "../../platform/lib/clock.ts";

/** The public record of a management key. */
export const managementKeyObjectSchema = z
  .object({
    id: z.string(),
    object: z.literal("management_key"),
    name: z.string(),
    description: z.string().nullable(),
    scopes: z.array(z.string()),
    label: z.string(),
    created_at: z.string(),
    expires_at: z.string().nullable(),
    last_used_at: z.string().nullable(),
    status: z.enum(["active", "expired", "revoked"]),
    revoked_at: z.string().nullable(),
    revocation_reason: z.string().nullable(),
  })
  .meta({ id: "ManagementKey" });

/** The record of a key, without its secret and its hash. */
export function managementKeyObject(
  key: ManagementKey,
  { lastUsedAtMs, nowMs }: { lastUsedAtMs: number | null; nowMs: number },
): z.infer<typeof managementKeyObjectSchema> {
  return {
    id: key.id,
    object: "management_key",
    name: key.name,
    description: key.description,
    scopes: [...key.scopes],
    label: key.label,
    created_at: new Date(key.createdAtMs).toISOString(),
    expires_at: isoOrNull(key.expiresAtMs),
    last_used_at: isoOrNull(lastUsedAtMs),
    status: managementKeyStatus(key, nowMs),
    revoked_at: isoOrNull(key.revokedAtMs),
    revocation_reason: key.revocationReason,
  };
}
