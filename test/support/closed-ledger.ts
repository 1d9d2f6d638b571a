import { checkClosedMonths } from "../../src/billing/ledger/closed/closed-check.ts";
import { checkLedger } from "../../src/billing/ledger/ledger-check.ts";
import type { LedgerTables } from "../../src/billing/ledger/ledger-store.ts";
import {
  chargeRows,
  ledgerAdds,
  transferInsert,
  transferRows,
} from "../../src/billing/ledger/transfer.ts";
import { grantInsert } from "../../src/billing/credits/grants.ts";
import { openPostgres, openSqlite } from "../../src/cli/database.ts";
import { newId } from "../../src/platform/kernel/ids.ts";
import type { CommitUnit } from "../../src/platform/storage/commit-queue.ts";
import { migrations } from "../../src/platform/storage/migrations/index.ts";
import { openStorage } from "../../src/platform/storage/open-storage.ts";
import type { Storage } from "../../src/platform/storage/storage.ts";

/** The key for hashes of closed months in tests. */
export const closingKey = new Uint8Array(32).fill(7);

/** A database of the ledger alone, with its URL. */
export type ClosedLedger = Storage<LedgerTables> & { url: string };

/** Opens the database of a ledger. */
export const openClosedLedger = async (url: string): Promise<ClosedLedger> => ({
  ...(await openStorage<LedgerTables>({
    url,
    durability: "process",
    migrations,
    lockTimeoutMs: 60_000,
    commitTimeoutMs: 60_000,
    commitStatements: { inserts: [transferInsert, grantInsert], adds: ledgerAdds },
  })),
  url,
});

/** Returns the problems that `npm run doctor` finds in the books, without a gateway. */
export async function problemsOf({ url }: Pick<ClosedLedger, "url">): Promise<string[]> {
  const { query, close } = url.startsWith("sqlite:")
    ? openSqlite(url.slice("sqlite:".length))
    : await openPostgres(url);
  try {
    return [...(await checkLedger(query)), ...(await checkClosedMonths(query, closingKey))];
  } finally {
    await close();
  }
}

/** Returns the purchase of credits by a workspace at a wall time. */
export function topUpUnit(workspaceId: string, atMs: number, id = newId("txn", atMs)): CommitUnit {
  const { insert, adds } = transferRows({
    id,
    from: "operator:payments",
    to: `${workspaceId}:topup`,
    amountNano: 9_000_000_000_001n,
    kind: "topup",
    reference: null,
    atMs,
  });
  return { inserts: [insert], adds };
}

/** Returns the charge of a request at a wall time, a part of which remains uncollected. */
export const chargeUnit = (
  workspaceId: string,
  atMs: number,
  chargeId = newId("gen", atMs),
): CommitUnit =>
  chargeRows({
    chargeId,
    workspaceId,
    keyId: `key_${workspaceId}`,
    parts: { monthlyNano: 0n, topupNano: 1_000_003n },
    posted: { chargedNano: 1_000_003n, uncollectedNano: 17n },
    byokNano: 0n,
    nowMs: atMs,
  });
