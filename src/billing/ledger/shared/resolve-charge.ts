import type { Clock } from "../../../platform/kernel/clock.ts";
import type { CommitQueue, CommitUnit } from "../../../platform/storage/commit-queue.ts";
import { isUniqueViolation } from "../../../platform/storage/storage-error.ts";
import { operatorAccounts, transferRows } from "../transfer.ts";
import { decidingTransferOf, type OpenCharge } from "./account-readings.ts";
import type { OpenCharges } from "./open-charges.ts";

/**
 * Returns a transfer that moves nothing and takes the id of a charge's missing transfer, so that
 * the charge can never be committed later.
 */
function tombstone(charge: OpenCharge, atMs: number): CommitUnit {
  const { revenue } = operatorAccounts;
  const { insert } = transferRows({
    id: decidingTransferOf(charge),
    from: revenue,
    to: revenue,
    amountNano: 1n,
    kind: "expiry",
    reference: charge.id,
    atMs,
  });
  return { inserts: [insert], adds: [] };
}

/**
 * Finds out the outcome of a charge whose process died. It is committed if its transfer exists.
 * Otherwise a transfer that moves nothing takes the id, so that the charge can never be committed.
 * Afterwards `forget` makes the server read the database again.
 */
export async function resolveCharge(
  charge: OpenCharge,
  {
    workspaceId,
    charges,
    commits,
    clock,
    forget,
  }: {
    workspaceId: string;
    charges: OpenCharges;
    commits: CommitQueue;
    clock: Clock;
    forget(): Promise<void>;
  },
): Promise<void> {
  charges.add(charge.id, { workspaceId, keyIds: [] });
  if (charge.monthlyNano + charge.topupNano > 0n) {
    try {
      await commits.commit(tombstone(charge, clock.nowMs()));
      charges.revert(charge.id);
    } catch (error) {
      if (!isUniqueViolation(error)) {
        charges.drop(charge.id);
        throw error;
      }
      charges.confirm(charge.id);
    }
    return forget();
  }
  await forget();
  charges.confirm(charge.id);
}
