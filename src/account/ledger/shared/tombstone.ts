import type { CommitUnit } from "../../../platform/storage/commit-queue.ts";
import { operatorAccounts, transferRows } from "../transfer.ts";

/** A transfer that moves nothing and has the id of one which never came to stand, so that it never can. */
export function tombstone(transferId: string, { chargeId, atMs }: { chargeId: string; atMs: number }): CommitUnit {
  const { revenue } = operatorAccounts;
  const { insert } = transferRows({
    id: transferId, from: revenue, to: revenue, amountNano: 1n, kind: "expiry", reference: chargeId, atMs,
  });
  return { inserts: [insert], adds: [] };
}
