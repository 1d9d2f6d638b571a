import type { Clock } from "../../../platform/kernel/clock.ts";
import type { CommitQueue, CommitUnit } from "../../../platform/storage/commit-queue.ts";
import { isUniqueViolation } from "../../../platform/storage/storage-error.ts";
import { operatorAccounts, transferRows } from "../transfer.ts";
import { fenceOf, type OpenCharge } from "./account-readings.ts";
import type { OpenCharges } from "./open-charges.ts";

/**
 * A transfer that moves nothing and has the id of one which never came to stand, so that it never
 * can.
 */
function tombstone(charge: OpenCharge, atMs: number): CommitUnit {
  const { revenue } = operatorAccounts;
  const { insert } = transferRows({
    id: fenceOf(charge),
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
 * Finds out what became of a charge whose process died. It stands where its transfer does; where it
 * does not, another one takes its id, so that it never will. The server reads the database after
 * that, by `forget`.
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
