import { minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import type { Workspace, PlanId } from "../../identity/workspaces/workspace-store.ts";
import type { Grants } from "./grants.ts";
import type { GrantStore } from "./grant-store.ts";
import { monthOf, startOfMonthMs, type Month } from "../ledger/month.ts";
import type { Withdrawals } from "./withdrawals.ts";

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
export class MonthlyCredits {
  private month: Month | undefined;
  /** Workspaces that have had this month's credits. */
  private readonly served = new Set<string>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly options: MonthlyCreditsOptions) {}

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
