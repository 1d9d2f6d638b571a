import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { Workspace } from "../../identity/workspaces/workspace-store.ts";
import { Grants } from "./grants.ts";
import { GrantStore } from "./grant-store.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { LedgerTables } from "../ledger/ledger-store.ts";
import { Statements } from "./statements.ts";
import { Withdrawals } from "./withdrawals.ts";
import { MonthlyCredits } from "./monthly-credits.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** The operator's settings for the credits of each plan. */
export type PlanCredits = Readonly<
  Record<string, { monthlyCreditsNanoUsd?: bigint | undefined } | undefined>
>;

/** The parts that grant and take credits without a request. */
export interface Credits {
  grants: Grants;
  grantStore: GrantStore;
  withdrawals: Withdrawals;
  monthlyCredits: MonthlyCredits;
  statements: Statements;
}

/**
 * Builds the credit parts. `monthlyCredits` has to run before the first request, and every minute
 * afterwards.
 */
export function openCredits(options: {
  database: Kysely<LedgerTables>;
  commits: CommitQueue;
  clock: Clock;
  ledger: LedgerPort;
  plans: PlanCredits;
  workspaces(): readonly Workspace[];
  /**
   * Returns whether this gateway, among several on the database, runs the jobs that run once;
   * absent where there is one.
   */
  isLeader?: (() => boolean) | undefined;
  onError(error: unknown): void;
}): Credits {
  const { database, commits, clock, ledger, plans } = options;
  const grantStore = new GrantStore({ database: withTables(database), commits });
  const grants = new Grants({ ledger, store: grantStore });
  const withdrawals = new Withdrawals({ purse: ledger, commits, clock });
  const monthlyCredits = new MonthlyCredits({
    ...options,
    grants,
    grantStore,
    withdrawals,
    creditsOf: (plan) => plans[plan]?.monthlyCreditsNanoUsd ?? 0n,
  });
  return {
    grants,
    grantStore,
    withdrawals,
    monthlyCredits,
    statements: new Statements({ database, commits }),
  };
}
