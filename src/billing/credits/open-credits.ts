import type { Kysely } from "kysely";
import { minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { Workspace, PlanId } from "../../identity/workspaces/workspace-store.ts";
import { GrantStore, Grants } from "./grants.ts";
import type { LedgerPort, Purse, Withdrawal } from "../ledger/ledger-port.ts";
import type { LedgerTables } from "../ledger/ledger-store.ts";
import { Statements } from "./statement.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { monthOf, startOfMonthMs, type Month } from "../ledger/month.ts";
import { bucketAccount, operatorAccounts, transferRows } from "../ledger/transfer.ts";

/**
 * Returns the transfer id of a plan's monthly credits. It is unique for each month and workspace,
 * so the ledger grants them once.
 */
const planTransferId = (month: Month, workspaceId: string): string =>
  `txn_plan_${month}_${workspaceId}`;

/** Options of monthly credits. */
interface MonthlyCreditsOptions {
  grants: Grants;
  grantStore: GrantStore;
  withdrawals: Withdrawals;
  clock: Clock;
  workspaces(): readonly Workspace[];
  /** Returns the monthly credits of a plan, in nano-USD. */
  creditsOf(plan: PlanId): bigint;
  /**
   * Returns whether this gateway, among several on the database, runs the jobs that run once;
   * absent where there is one.
   */
  isLeader?: (() => boolean) | undefined;
  onError(error: unknown): void;
}

/**
 * Renews monthly credits at the start of each month (UTC): what is left of earlier months lapses,
 * then each workspace is granted its plan's credits, exactly once a month. Runs every minute, so
 * that a workspace that was created or changed its plan meanwhile gets its credits, and so that
 * credits that a hold kept back lapse once it ends.
 */
class MonthlyCredits {
  private readonly options: MonthlyCreditsOptions;
  private month: Month | undefined;
  /** Workspaces that have had this month's credits. */
  private readonly served = new Set<string>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(options: MonthlyCreditsOptions) {
    this.options = options;
  }

  /** Starts to run every minute. */
  start(): void {
    this.timer = setInterval(() => {
      if (this.options.isLeader?.() === false) return;
      this.running = this.running.then(() => this.run());
    }, minuteMs);
  }

  /** Stops; resolves when a run in progress has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }

  /** Does everything that is due. What the database refuses is tried again on the next run. */
  async run(): Promise<void> {
    try {
      await this.turnMonth();
    } catch (error) {
      return this.options.onError(error);
    }
    for (const workspace of this.options.workspaces())
      await this.serve(workspace).catch((error: unknown) => this.options.onError(error));
  }

  private async turnMonth(): Promise<void> {
    const { clock, grantStore } = this.options;
    const month = monthOf(clock.nowMs());
    if (month === this.month) return;
    const given = await grantStore.givenSince(startOfMonthMs(month));
    this.served.clear();
    // Compared by id, since a grant of the previous month may be recorded in this one.
    for (const { transferId, workspaceId } of given)
      if (transferId === planTransferId(month, workspaceId)) this.served.add(workspaceId);
    this.month = month;
  }

  private async serve({ id: workspaceId, plan }: Workspace): Promise<void> {
    const { withdrawals, grants, creditsOf } = this.options;
    await withdrawals.lapse(workspaceId);
    const amountNano = creditsOf(plan);
    const { month } = this;
    if (month === undefined || amountNano <= 0n || this.served.has(workspaceId)) return;
    // Any outcome means that this month's plan credits are granted: an earlier grant of them may
    // name another plan.
    await grants.give({
      transferId: planTransferId(month, workspaceId),
      workspaceId,
      bucket: "monthly",
      kind: "plan",
      amountNano,
      description: `Monthly credits of the plan ${plan}`,
      grantedBy: "system",
    });
    this.served.add(workspaceId);
  }
}

interface Movement extends Withdrawal {
  kind: "refund" | "expiry";
  reference: string | null;
  /** Returns rows to commit together with the transfer, where anything is taken. */
  alongside?: ((taken: { takenNano: bigint; atMs: number }) => CommitUnit["inserts"]) | undefined;
}

/** The credits that a refund takes back. */
interface Refund extends Omit<Movement, "bucket" | "kind" | "mostNano" | "month"> {
  amountNano: bigint;
}

/**
 * Takes credits from buckets without a request, never below zero and never what a hold counts on.
 */
export class Withdrawals {
  private readonly purse: Purse;
  private readonly commits: CommitQueue;
  private readonly clock: Clock;

  constructor(options: { purse: Purse; commits: CommitQueue; clock: Clock }) {
    this.purse = options.purse;
    this.commits = options.commits;
    this.clock = options.clock;
  }

  /**
   * Takes back bought credits whose payment was refunded or disputed: as much of the amount as is
   * present and not held. Resolves with the amount taken, once that is durable. The id is the
   * idempotency key; a repetition rejects.
   */
  refund({ amountNano, ...refund }: Refund): Promise<bigint> {
    return this.move({ ...refund, bucket: "topup", kind: "refund", mostNano: amountNano });
  }

  /**
   * Takes back what is left of past months' monthly credits. What a hold counts on stays until the
   * hold is settled or freed, so this is repeated. Resolves with the amount taken, once that is
   * durable.
   */
  lapse(workspaceId: string): Promise<bigint> {
    const nowMs = this.clock.nowMs();
    return this.move({
      id: newId("txn", nowMs),
      workspaceId,
      bucket: "monthly",
      month: monthOf(nowMs),
      kind: "expiry",
      reference: null,
    });
  }

  /**
   * Takes the money from memory as soon as it is requested, and returns it where the database
   * refuses.
   */
  private async move(movement: Movement): Promise<bigint> {
    const { id, workspaceId, bucket, kind, reference, alongside } = movement;
    const taking = this.purse.take(movement);
    const { takenNano, committed, undo } = taking instanceof Promise ? await taking : taking;
    if (takenNano <= 0n) return 0n;
    const atMs = this.clock.nowMs();
    const rows = transferRows({
      id,
      kind,
      reference,
      amountNano: takenNano,
      atMs,
      from: bucketAccount(workspaceId, bucket),
      to: kind === "refund" ? operatorAccounts.payments : operatorAccounts.grants,
    });
    try {
      await this.commits.commit({
        inserts: [rows.insert, ...(alongside?.({ takenNano, atMs }) ?? [])],
        adds: rows.adds,
      });
    } catch (error) {
      undo();
      throw error;
    }
    committed();
    return takenNano;
  }
}

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
