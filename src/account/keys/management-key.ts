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
}
