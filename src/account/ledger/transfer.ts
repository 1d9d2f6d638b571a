import type { InsertStatement, AddStatement } from "../../platform/storage/commit-queue.ts";

/** Credits that a workspace spends first (plan, referral, grants) and those it bought. */
export type Bucket = "monthly" | "topup";

/** Why money moved. */
export type TransferKind =
  | "charge"
  | "uncollected"
  | "topup"
  | "grant"
  | "bootstrap"
  | "refund"
  | "expiry";

/**
 * Every movement goes from one account to another, so all accounts together always sum to zero.
 * Accounts: `<workspace>:monthly`, `<workspace>:topup`, and the operator's own below.
 */
export const operatorAccounts = {
  revenue: "operator:revenue",
  uncollected: "operator:uncollected",
  payments: "operator:payments",
  grants: "operator:grants",
} as const;

export const bucketAccount = (workspaceId: string, bucket: Bucket): string =>
  `${workspaceId}:${bucket}`;

/** Append-only rows; the id is the idempotency key. */
export const transferInsert: InsertStatement = {
  name: "transfer",
  table: "transfers",
  columns: [
    "id",
    "debit_account",
    "credit_account",
    "amount_nano",
    "kind",
    "reference",
    "created_at_ms",
  ],
};

/** Balances kept beside the transfers in the same commit; always equal to their sums. */
export const accountAdd: AddStatement = {
  name: "ledger-account",
  table: "ledger_accounts",
  keyColumns: ["id"],
  sumColumns: ["balance_nano"],
};

/** Spend by key and hour: the windows of key limits and the usage figures of key records. */
export const keySpendAdd: AddStatement = {
  name: "key-spend-hour",
  table: "key_spend_hours",
  keyColumns: ["key_id", "workspace_id", "hour"],
  sumColumns: ["spend_nano", "requests"],
};

/** List prices of what callers' own provider keys paid, by key and hour: what `include_byok_in_limit` counts. */
export const keyByokAdd: AddStatement = {
  name: "key-byok-hour",
  table: "key_byok_hours",
  keyColumns: ["key_id", "hour"],
  sumColumns: ["spend_nano"],
};

/** The rows of one movement. */
export function transferRows(transfer: {
  id: string;
  from: string;
  to: string;
  amountNano: bigint;
  kind: TransferKind;
  reference: string | null;
  atMs: number;
}): {
  insert: { statement: InsertStatement; values: (string | number | null)[] };
  adds: { statement: AddStatement; key: string[]; sums: number[] }[];
} {
  const amount = Number(transfer.amountNano);
  return {
    insert: {
      statement: transferInsert,
      values: [
        transfer.id,
        transfer.from,
        transfer.to,
        amount,
        transfer.kind,
        transfer.reference,
        transfer.atMs,
      ],
    },
    adds: [
      { statement: accountAdd, key: [transfer.from], sums: [-amount] },
      { statement: accountAdd, key: [transfer.to], sums: [amount] },
    ],
  };
}
