import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { Workspace } from "../../identity/workspaces/workspace.ts";
import { GrantStore } from "./grant-store.ts";
import { Grants } from "./grants.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import { MonthlyCredits } from "./monthly-credits.ts";
import type { LedgerTables } from "../ledger/ledger-store.ts";
import { Statements } from "./statement.ts";
import { Withdrawals } from "./withdrawals.ts";

/** What an operator settled of a plan's credits. */
export type PlanCredits = Readonly<
  Record<string, { monthlyCreditsNanoUsd?: bigint | undefined } | undefined>
>;

/** Credits that come and go without a request. */
export interface Credits {
  grants: Grants;
  grantStore: GrantStore;
  withdrawals: Withdrawals;
  monthlyCredits: MonthlyCredits;
  statements: Statements;
}

/** Builds it; `monthlyCredits` is to be run before the first request, and then every minute. */
export function openCredits(options: {
  database: Kysely<LedgerTables>;
  commits: CommitQueue;
  clock: Clock;
  ledger: LedgerPort;
  plans: PlanCredits;
  workspaces(): readonly Workspace[];
  /** Where several gateways share the database, whether this one does what is done once. */
  isLeader?: (() => boolean) | undefined;
  onError(error: unknown): void;
}): Credits {
  const { database, commits, clock, ledger, plans } = options;
  const grantStore = new GrantStore({ database: database.withTables(), commits });
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
