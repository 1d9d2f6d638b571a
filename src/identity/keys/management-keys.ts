import type { Scope } from "./scopes.ts";

/** A management key, with the keyed hash of its secret. */
export interface ManagementKey {
  /** An `mgk_` id. */
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
  /** The person who created it, or the key that created it; null where that was not recorded. */
  creatorUserId: string | null;
}

/** The state of a management key. */
type ManagementKeyStatus = "active" | "expired" | "revoked";

/** Returns the state of a key at a wall time in milliseconds. */
export function managementKeyStatus(
  { revokedAtMs, expiresAtMs }: ManagementKey,
  nowMs: number,
): ManagementKeyStatus {
  if (revokedAtMs !== null) return "revoked";
  return expiresAtMs !== null && expiresAtMs <= nowMs ? "expired" : "active";
}

/** A management key that lost scopes, and which; one that has none left was revoked. */
export interface NarrowedKey {
  key: ManagementKey;
  lost: readonly Scope[];
}
