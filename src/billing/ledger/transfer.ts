import {
  type AddStatement,
  type CommitUnit,
  recordInsert,
} from "../../platform/storage/commit-queue.ts";
import type { LedgerTables } from "./ledger-store.ts";

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

const inserted = recordInsert<LedgerTables["transfers"], Transfer>({
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

/** Append-only rows; the id is the idempotency key. */
export const transferInsert = inserted.statement;

/**
 * Balances of workspaces: sums of their transfers. Where several gateways charge them, the database
 * refuses a commit that would take one below zero.
 */
export const accountAdd: AddStatement = {
  name: "ledger-account",
  table: "ledger_accounts",
  keyColumns: ["id"],
  sumColumns: ["balance_nano"],
  guarded: true,
};

/** Balances of the operator's accounts, which every charge moves and nothing bounds. */
const operatorAccountAdd: AddStatement = {
  name: "operator-account",
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

/**
 * List prices of what callers' own provider keys paid, by key and hour: what
 * `include_byok_in_limit` counts.
 */
export const keyByokAdd: AddStatement = {
  name: "key-byok-hour",
  table: "key_byok_hours",
  keyColumns: ["key_id", "hour"],
  sumColumns: ["spend_nano"],
};

/** Every sum of the ledger. */
export const ledgerAdds: readonly AddStatement[] = [
  accountAdd,
  operatorAccountAdd,
  keySpendAdd,
  keyByokAdd,
];

const accountAddOf = (account: string): AddStatement =>
  account.startsWith("operator:") ? operatorAccountAdd : accountAdd;

/** The rows of one movement. */
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
