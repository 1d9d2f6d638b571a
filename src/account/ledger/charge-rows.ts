import { hourMs } from "../../platform/lib/clock.ts";
import type { AddStatement, CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { WorkspaceAccount } from "./account-book.ts";
import { bucketAccount, keySpendAdd, operatorAccounts, transferRows } from "./transfer.ts";

/** How much of a charge each bucket pays: monthly credits first, then top-ups. */
export function splitOverBuckets(account: WorkspaceAccount, amountNano: bigint): { monthlyNano: bigint; topupNano: bigint } {
  const monthly = account.monthlyNano > 0n ? account.monthlyNano : 0n;
  const monthlyNano = amountNano < monthly ? amountNano : monthly;
  return { monthlyNano, topupNano: amountNano - monthlyNano };
}

/** The rows that make a charge stand: a transfer for each bucket that paid, one for what stayed uncollected. */
export function chargeRows(charge: {
  chargeId: string;
  workspaceId: string;
  keyId: string;
  parts: { monthlyNano: bigint; topupNano: bigint };
  posted: { chargedNano: bigint; uncollectedNano: bigint };
  nowMs: number;
}): { inserts: CommitUnit["inserts"][number][]; adds: { statement: AddStatement; key: (string | number)[]; sums: number[] }[] } {
  const { chargeId, workspaceId, parts, posted, nowMs } = charge;
  const movements = [
    { suffix: "m", kind: "charge", from: bucketAccount(workspaceId, "monthly"), amountNano: parts.monthlyNano },
    { suffix: "t", kind: "charge", from: bucketAccount(workspaceId, "topup"), amountNano: parts.topupNano },
    { suffix: "u", kind: "uncollected", from: operatorAccounts.uncollected, amountNano: posted.uncollectedNano },
  ] as const;
  const inserts: CommitUnit["inserts"][number][] = [];
  const adds: { statement: AddStatement; key: (string | number)[]; sums: number[] }[] = [{
    statement: keySpendAdd,
    key: [charge.keyId, workspaceId, Math.floor(nowMs / hourMs)],
    sums: [Number(posted.chargedNano), 1],
  }];
  for (const { suffix, kind, from, amountNano } of movements) {
    if (amountNano <= 0n) continue;
    const rows = transferRows({
      id: `txn_${chargeId.slice(chargeId.indexOf("_") + 1)}${suffix}`,
      from, to: operatorAccounts.revenue, amountNano, kind, reference: chargeId, atMs: nowMs,
    });
    inserts.push(rows.insert);
    adds.push(...rows.adds);
  }
  return { inserts, adds };
}
