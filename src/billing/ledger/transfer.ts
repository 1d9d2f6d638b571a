import { hourMs } from "../../platform/kernel/clock.ts";
import {
  type AddStatement,
  type CommitUnit,
  recordInsert,
} from "../../platform/storage/commit-queue.ts";
import type { WorkspaceAccount } from "./book/account-book.ts";
import type { TransferRow } from "./closed/closed-books.ts";

/**
 * The bucket of credits that a workspace spends first (plan, referral, grants), and that of credits
 * it bought.
 */
export type Bucket = "monthly" | "topup";

/** The reason for a transfer. */
export type TransferKind =
  | "charge"
  | "uncollected"
  | "topup"
  | "grant"
  | "bootstrap"
  | "refund"
  | "expiry";

/**
 * The operator's accounts. Every transfer goes from one account to another, so the balances of all
 * accounts add up to zero. The accounts of a workspace are `<workspace>:monthly` and
 * `<workspace>:topup`.
 */
export const operatorAccounts = {
  revenue: "operator:revenue",
  uncollected: "operator:uncollected",
  payments: "operator:payments",
  grants: "operator:grants",
} as const;

/** Returns the account of a workspace's bucket, such as `ws_1:topup`. */
export const bucketAccount = (workspaceId: string, bucket: Bucket): string =>
  `${workspaceId}:${bucket}`;

/** A request to add credits to a bucket. */
export interface CreditRequest {
  id: string;
  workspaceId: string;
  bucket: Bucket;
  amountNano: bigint;
  kind: TransferKind;
  reference: string | null;
  /** Returns the rows that are committed together with the transfer. */
  alongside?: (atMs: number) => CommitUnit["inserts"];
}

/** One movement of money between two accounts. */
interface Transfer {
  id: string;
  from: string;
  to: string;
  amountNano: bigint;
  kind: TransferKind;
  reference: string | null;
  atMs: number;
}

const inserted = recordInsert<TransferRow, Transfer>({
  name: "transfer",
  table: "transfers",
  columns: {
    id: ({ id }) => id,
    debit_account: ({ from }) => from,
    credit_account: ({ to }) => to,
    amount_nano: ({ amountNano }) => Number(amountNano),
    kind: ({ kind }) => kind,
    reference: ({ reference }) => reference,
    created_at_ms: ({ atMs }) => atMs,
  },
});

/** The insert of transfers, which never change. The id is the idempotency key. */
export const transferInsert = inserted.statement;

/**
 * The balances of workspaces, which are sums of their transfers. Where several gateways charge
 * them, the database refuses a commit that would make one negative.
 */
export const accountAdd: AddStatement = {
  name: "ledger-account",
  table: "ledger_accounts",
  keyColumns: ["id"],
  sumColumns: ["balance_nano"],
  guarded: true,
};

/** The balances of the operator's accounts, which every charge changes and nothing limits. */
const operatorAccountAdd: AddStatement = {
  name: "operator-account",
  table: "ledger_accounts",
  keyColumns: ["id"],
  sumColumns: ["balance_nano"],
};

/** Spend by key and hour, for the windows of key limits and the usage figures of keys. */
const keySpendAdd: AddStatement = {
  name: "key-spend-hour",
  table: "key_spend_hours",
  keyColumns: ["key_id", "workspace_id", "hour"],
  sumColumns: ["spend_nano", "requests"],
};

/**
 * The list prices of requests through callers' own provider keys, by key and hour. They count where
 * `include_byok_in_limit` is set.
 */
const keyByokAdd: AddStatement = {
  name: "key-byok-hour",
  table: "key_byok_hours",
  keyColumns: ["key_id", "hour"],
  sumColumns: ["spend_nano"],
};

/** All sums of the ledger. */
export const ledgerAdds: readonly AddStatement[] = [
  accountAdd,
  operatorAccountAdd,
  keySpendAdd,
  keyByokAdd,
];

const accountAddOf = (account: string): AddStatement =>
  account.startsWith("operator:") ? operatorAccountAdd : accountAdd;

/** Returns the rows of one transfer. */
export function transferRows(transfer: Transfer): {
  insert: CommitUnit["inserts"][number];
  adds: { statement: AddStatement; key: string[]; sums: number[] }[];
} {
  const amount = Number(transfer.amountNano);
  return {
    insert: inserted.rowOf(transfer),
    adds: [
      { statement: accountAddOf(transfer.from), key: [transfer.from], sums: [-amount] },
      { statement: accountAddOf(transfer.to), key: [transfer.to], sums: [amount] },
    ],
  };
}

/** The part of a charge that each bucket pays. */
export interface ChargeParts {
  monthlyNano: bigint;
  topupNano: bigint;
}

/** Splits a charge over the buckets: monthly credits first, then top-ups. */
export function splitOverBuckets(
  account: Pick<WorkspaceAccount, "monthlyNano">,
  amountNano: bigint,
): ChargeParts {
  const monthly = account.monthlyNano > 0n ? account.monthlyNano : 0n;
  const monthlyNano = amountNano < monthly ? amountNano : monthly;
  return { monthlyNano, topupNano: amountNano - monthlyNano };
}

/**
 * Returns the id of a charge's transfer. Its last letter says what the transfer moves: monthly
 * credits, top-ups, or the uncollected amount.
 */
const transferId = (chargeId: string, suffix: "m" | "t" | "u"): string =>
  `txn_${chargeId.slice(chargeId.indexOf("_") + 1)}${suffix}`;

/** Returns the ids of all transfers that a charge can consist of. */
export const chargeTransferIds = (chargeId: string): string[] =>
  (["m", "t", "u"] as const).map((suffix) => transferId(chargeId, suffix));

/** A charge, with the data that its rows contain. */
interface ChargeFacts {
  /** The id of the hold that is charged, from which the ids of the transfers derive. */
  chargeId: string;
  /** The id of the request that is charged; absent where it is the id of the hold. */
  generationId?: string;
  workspaceId: string;
  keyId: string;
  parts: ChargeParts;
  posted: { chargedNano: bigint; uncollectedNano: bigint };
  byokNano: bigint;
  nowMs: number;
}

/**
 * Returns the rows of a charge: a transfer for each bucket that paid, one for the uncollected
 * amount, and the spend of the key.
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
  { chargeId, generationId = chargeId, nowMs }: ChargeFacts,
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
    reference: generationId,
    atMs: nowMs,
  });
  rows.inserts.push(insert);
  for (const add of adds) rows.adds.push(add);
}

/** Returns the rows that add credits to a bucket. */
export function creditUnit(
  { workspaceId, bucket, alongside, ...transfer }: CreditRequest,
  atMs: number,
): CommitUnit {
  const from = transfer.kind === "topup" ? operatorAccounts.payments : operatorAccounts.grants;
  const rows = transferRows({ ...transfer, from, to: bucketAccount(workspaceId, bucket), atMs });
  return { inserts: [rows.insert, ...(alongside?.(atMs) ?? [])], adds: rows.adds };
}
