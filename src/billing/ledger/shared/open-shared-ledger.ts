import type { Kysely } from "kysely";
import type { SpentBy } from "../../budgets/budget-watch.ts";
import type { BlockingBudgets } from "../../budgets/blocking-budgets.ts";
import type { Clock } from "../../../platform/kernel/clock.ts";
import type { DatabaseEpoch } from "../../../platform/storage/database-epoch.ts";
import type { CommitQueue } from "../../../platform/storage/commit-queue.ts";
import type { AccountBook } from "../book/account-book.ts";
import type { LedgerStore } from "../ledger-store.ts";
import { AccountReadings, type ReadingTables } from "./account-readings.ts";
import { type LedgerParts, SharedAccounts } from "./shared-accounts.ts";
import { SharedLedger } from "./shared-ledger.ts";

/** Builds the ledger of several processes and starts renewing its holds. */
export function openSharedLedger({
  shared,
  nodeId,
  epoch,
  database,
  store,
  loadParents,
  spentBy,
  ...parts
}: {
  shared: LedgerParts;
  nodeId: string;
  epoch: DatabaseEpoch | undefined;
  database: Kysely<ReadingTables>;
  store: LedgerStore;
  book: AccountBook;
  commits: CommitQueue;
  clock: Clock;
  blocking: BlockingBudgets;
  spentBy: SpentBy;
  /** Loads the parents of keys, by the ids of their children. */
  loadParents(): Promise<ReadonlyMap<string, string>>;
  onError(error: unknown): void;
}): SharedLedger {
  const { book, clock } = parts;
  const accounts = new SharedAccounts({
    shared,
    nodeId,
    epoch,
    readings: new AccountReadings(database, spentBy),
    nowMs: () => clock.nowMs(),
  });
  const readBook = async (workspaceId: string): Promise<void> =>
    store.refreshIn(book, { workspaceId, nowMs: clock.nowMs(), parents: await loadParents() });
  const ledger = new SharedLedger({ ...parts, accounts, readBook });
  ledger.start();
  // Restores the holds in a new epoch of the database, where the server does not have them.
  epoch?.onChange(() => void ledger.renew());
  return ledger;
}
