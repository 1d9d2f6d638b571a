import { hourMs } from "../../platform/kernel/clock.ts";
import type { CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { WorkspaceAccount } from "./account-book.ts";
import {
  bucketAccount,
  keyByokAdd,
  keySpendAdd,
  operatorAccounts,
  transferRows,
} from "./transfer.ts";

/** What each bucket pays of a charge. */
export interface ChargeParts {
  monthlyNano: bigint;
  topupNano: bigint;
}

/** How much of a charge each bucket pays: monthly credits first, then top-ups. */
export function splitOverBuckets(
  account: Pick<WorkspaceAccount, "monthlyNano">,
  amountNano: bigint,
): ChargeParts {
  const monthly = account.monthlyNano > 0n ? account.monthlyNano : 0n;
  const monthlyNano = amountNano < monthly ? amountNano : monthly;
  return { monthlyNano, topupNano: amountNano - monthlyNano };
}

/**
 * Transfers of a charge differ in the last letter: monthly credits, top-ups, and what stayed
 * uncollected.
 */
const transferId = (chargeId: string, suffix: "m" | "t" | "u"): string =>
  `txn_${chargeId.slice(chargeId.indexOf("_") + 1)}${suffix}`;

/** Ids of all transfers that a charge can consist of. */
export const chargeTransferIds = (chargeId: string): string[] =>
  (["m", "t", "u"] as const).map((suffix) => transferId(chargeId, suffix));

/** A charge as its rows need it. */
interface ChargeFacts {
  chargeId: string;
  workspaceId: string;
  keyId: string;
  parts: ChargeParts;
  posted: { chargedNano: bigint; uncollectedNano: bigint };
  byokNano: bigint;
  nowMs: number;
}

/**
 * The rows that make a charge stand: a transfer for each bucket that paid, one for what stayed
 * uncollected.
 */
export function chargeRows(charge: ChargeFacts): CommitUnit {
  const { workspaceId, keyId, parts, posted, byokNano } = charge;
  const hour = Math.floor(charge.nowMs / hourMs);
  const rows: Rows = {
    inserts: [],
    adds: [
      {
        statement: keySpendAdd,
        key: [keyId, workspaceId, hour],
        sums: [Number(posted.chargedNano), 1],
      },
    ],
  };
  if (byokNano > 0n)
    rows.adds.push({ statement: keyByokAdd, key: [keyId, hour], sums: [Number(byokNano)] });
  const { monthlyNano, topupNano } = parts;
  if (monthlyNano > 0n) {
    move(rows, charge, {
      suffix: "m",
      kind: "charge",
      from: bucketAccount(workspaceId, "monthly"),
      amountNano: monthlyNano,
    });
  }
  if (topupNano > 0n) {
    move(rows, charge, {
      suffix: "t",
      kind: "charge",
      from: bucketAccount(workspaceId, "topup"),
      amountNano: topupNano,
    });
  }
  const { uncollectedNano } = posted;
  if (uncollectedNano > 0n) {
    move(rows, charge, {
      suffix: "u",
      kind: "uncollected",
      from: operatorAccounts.uncollected,
      amountNano: uncollectedNano,
    });
  }
  return rows;
}

interface Rows {
  inserts: CommitUnit["inserts"][number][];
  adds: CommitUnit["adds"][number][];
}

function move(
  rows: Rows,
  { chargeId, nowMs }: ChargeFacts,
  {
    suffix,
    kind,
    from,
    amountNano,
  }: { suffix: "m" | "t" | "u"; kind: "charge" | "uncollected"; from: string; amountNano: bigint },
): void {
  const { insert, adds } = transferRows({
    id: transferId(chargeId, suffix),
    from,
    to: operatorAccounts.revenue,
    amountNano,
    kind,
    reference: chargeId,
    atMs: nowMs,
  });
  rows.inserts.push(insert);
  for (const add of adds) rows.adds.push(add);
}
