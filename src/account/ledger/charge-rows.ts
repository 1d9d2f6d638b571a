import { hourMs } from "../../platform/lib/clock.ts";
import type { AddStatement, CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { WorkspaceAccount } from "./account-book.ts";
import { bucketAccount, keyByokAdd, keySpendAdd, operatorAccounts, transferRows } from "./transfer.ts";

/** How much of a charge each bucket pays: monthly credits first, then top-ups. */
export function splitOverBuckets(account: WorkspaceAccount, amountNano: bigint): { monthlyNano: bigint; topupNano: bigint } {
  const monthly = account.monthlyNano > 0n ? account.monthlyNano : 0n;
  const monthlyNano = amountNano < monthly ? amountNano : monthly;
  return { monthlyNano, topupNano: amountNano - monthlyNano };
}

/** Transfers of a charge differ in the last letter: monthly credits, top-ups, and what stayed uncollected. */
const transferId = (chargeId: string, suffix: "m" | "t" | "u"): string => `txn_${chargeId.slice(chargeId.indexOf("_") + 1)}${suffix}`;

/** Ids of all transfers that a charge can consist of. */
export const chargeTransferIds = (chargeId: string): string[] => (["m", "t", "u"] as const).map((suffix) => transferId(chargeId, suffix));

/** The rows that make a charge stand: a transfer for each bucket that paid, one for what stayed uncollected. */
export function chargeRows(charge: {
  chargeId: string;
  workspaceId: string;
  keyId: string;
  parts: { monthlyNano: bigint; topupNano: bigint };
  posted: { chargedNano: bigint; uncollectedNano: bigint };
  byokNano: bigint;
  nowMs: number;
}): { inserts: CommitUnit["inserts"][number][]; adds: { statement: AddStatement; key: (string | number)[]; sums: number[] }[] } {
  const { chargeId, workspaceId, parts, posted, byokNano, nowMs } = charge;
  const hour = Math.floor(nowMs / hourMs);
  const movements = [
    { suffix: "m", kind: "charge", from: bucketAccount(workspaceId, "monthly"), amountNano: parts.monthlyNano },
    { suffix: "t", kind: "charge", from: bucketAccount(workspaceId, "topup"), amountNano: parts.topupNano },
    { suffix: "u", kind: "uncollected", from: operatorAccounts.uncollected, amountNano: posted.uncollectedNano },
  ] as const;
  const inserts: CommitUnit["inserts"][number][] = [];
  const adds: { statement: AddStatement; key: (string | number)[]; sums: number[] }[] = [{
    statement: keySpendAdd,
    key: [charge.keyId, workspaceId, hour],
    sums: [Number(posted.chargedNano), 1],
  }];
  if (byokNano > 0n) adds.push({ statement: keyByokAdd, key: [charge.keyId, hour], sums: [Number(byokNano)] });
  for (const { suffix, kind, from, amountNano } of movements) {
    if (amountNano <= 0n) continue;
    const rows = transferRows({
      id: transferId(chargeId, suffix),
      from, to: operatorAccounts.revenue, amountNano, kind, reference: chargeId, atMs: nowMs,
    });
    inserts.push(rows.insert);
    adds.push(...rows.adds);
  }
  return { inserts, adds };
}
