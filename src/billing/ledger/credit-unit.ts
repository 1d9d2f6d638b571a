import type { CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { CreditRequest } from "./ledger-port.ts";
import { bucketAccount, operatorAccounts, transferRows } from "./transfer.ts";

/** What makes credits stand. */
export function creditUnit(
  { workspaceId, bucket, alongside, ...transfer }: CreditRequest,
  atMs: number,
): CommitUnit {
  const from = transfer.kind === "topup" ? operatorAccounts.payments : operatorAccounts.grants;
  const rows = transferRows({ ...transfer, from, to: bucketAccount(workspaceId, bucket), atMs });
  return { inserts: [rows.insert, ...(alongside?.(atMs) ?? [])], adds: rows.adds };
}
