import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { LedgerParts } from "./shared/shared-accounts.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { DatabaseEpoch } from "../../platform/storage/database-epoch.ts";
import type { SpentBy, SpentByEach } from "../budgets/budget-watch.ts";
import { BlockingBudgets } from "../budgets/blocking-budgets.ts";
import { AccountBook } from "./book/account-book.ts";
import { BudgetCounters } from "./book/budget-counters.ts";
import type { LedgerPort } from "./ledger-port.ts";
import { LedgerStore, type LedgerTables } from "./ledger-store.ts";
import { Ledger } from "./ledger.ts";
import { openSharedLedger } from "./shared/open-shared-ledger.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/**
 * The server on which several gateways share their holds, and the identity of this gateway there.
 */
export interface SharedHolds {
  state: LedgerParts;
  /** The state as far as it belongs to the database; absent where that is not checked. */
  paired?: LedgerParts;
  nodeId: string;
  epoch?: DatabaseEpoch | undefined;
}

/** Options of the ledger. */
export interface LedgerOptions {
  database: Kysely<LedgerTables>;
  commits: CommitQueue;
  clock: Clock;
  /** Returns spend in nano-USD, from the usage counters. */
  spentBy: SpentBy;
  /** Returns the spend of each customer, or of each value of a tag. */
  spentByEach?: SpentByEach | undefined;
  /** The shared holds; absent where this gateway is the only one on its database. */
  shared?: SharedHolds | undefined;
  /** Returns the parents of keys: the id of each child, and that of its parent. */
  loadParents(): Promise<ReadonlyMap<string, string>>;
  /** Called when an update of the shared ledger failed. The update is retried. */
  onLedgerError(error: unknown): void;
}

/** The parts of the ledger. */
export interface OpenedLedger {
  ledger: LedgerPort;
  ledgerStore: LedgerStore;
  blockingBudgets: BlockingBudgets;
  /** Loads balances and the spend of keys into memory. Called once, before the first request. */
  load(): Promise<void>;
}

/** Creates the ledger of this process, or of several processes where they share a server for it. */
export function openLedger(options: LedgerOptions): OpenedLedger {
  const { database, commits, clock, loadParents } = options;
  const store = new LedgerStore({ database: withTables(database), commits });
  const blocking = new BlockingBudgets();
  const ledger = ledgerOf(options, { store, blocking });
  return {
    ledger,
    ledgerStore: store,
    blockingBudgets: blocking,
    load: async () =>
      store.loadInto(ledger.book, { nowMs: clock.nowMs(), parents: await loadParents() }),
  };
}

function ledgerOf(
  { database, commits, clock, spentBy, shared, loadParents, ...options }: LedgerOptions,
  { store, blocking }: { store: LedgerStore; blocking: BlockingBudgets },
): LedgerPort {
  const book = new AccountBook();
  if (shared === undefined) {
    const budgets = new BudgetCounters({ blocking, spentBy, spentByEach: options.spentByEach });
    return new Ledger({ book, commits, clock, budgets });
  }
  return openSharedLedger({
    shared: shared.paired ?? shared.state,
    nodeId: shared.nodeId,
    epoch: shared.epoch,
    database: withTables(database),
    store,
    book,
    commits,
    clock,
    blocking,
    spentBy,
    loadParents,
    onError: options.onLedgerError,
  });
}
