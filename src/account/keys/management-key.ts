import type { Scope } from "./scopes.ts";

/** A management key as the gateway knows it; only the keyed hash of its secret is kept. */
export interface ManagementKey {
  /** `mgk_` id. */
  id: string;
  hash: string;
  workspaceId: string;
  name: string;
  description: string | null;
  scopes: readonly Scope[];
  label: string;
  createdAtMs: number;
  expiresAtMs: number | null;
  revokedAtMs: number | null;
  revocationReason: string | null;
  /** The person who made it, or made the key that did; null where nobody knows. */
  creatorUserId: string | null;
}

/** What has become of a management key. */
export type ManagementKeyStatus = "active" | "expired" | "revoked";

/** The state of a key at a wall time in milliseconds. */
export function managementKeyStatus(
  { revokedAtMs, expiresAtMs }: ManagementKey,
  nowMs: number,
): ManagementKeyStatus {
  if (revokedAtMs !== null) return "revoked";
  return expiresAtMs !== null && expiresAtMs <= nowMs ? "expired" : "active";
}
