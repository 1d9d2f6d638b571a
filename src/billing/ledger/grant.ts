import type { Bucket } from "./transfer.ts";

/** Why credits were given: with the plan, by the operator, or for a referral. */
export type GrantKind = "plan" | "admin" | "referral";

/**
 * Credits that the operator gives. Monthly ones end with their month, those of the top-up bucket
 * never.
 */
export interface Grant {
  /** Id of the transfer, and the idempotency key. */
  transferId: string;
  workspaceId: string;
  bucket: Bucket;
  kind: GrantKind;
  amountNano: bigint;
  description: string | null;
  /** Id of who gave them; `system` for those of a plan. */
  grantedBy: string;
}
