import { minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import type { PlanId, Workspace } from "../../identity/workspaces/workspace.ts";
import type { Grants } from "./grants.ts";
import { monthOf, startOfMonthMs, type Month } from "../ledger/month.ts";
import type { GrantStore } from "./grant-store.ts";
import type { Withdrawals } from "./withdrawals.ts";

/**
 * A workspace has the credits of its plan once a month, since the ledger has each transfer once.
 */
const planTransferId = (month: Month, workspaceId: string): string =>
  `txn_plan_${month}_${workspaceId}`;

/** What the turn of the month needs. */
export interface MonthlyCreditsOptions {
  grants: Grants;
  grantStore: GrantStore;
  withdrawals: Withdrawals;
  clock: Clock;
  workspaces(): readonly Workspace[];
  /** What comes with each plan, a month. */
  creditsOf(plan: PlanId): bigint;
  /** Where several gateways share the database, whether this one does what is done once. */
  isLeader?: (() => boolean) | undefined;
  onError(error: unknown): void;
}

/**
 * The turn of the month (UTC): what is left of older monthly credits lapses, then each workspace
 * receives those of its plan, exactly once a month. Runs every minute, so that a workspace that was
 * made or changed its plan meanwhile has its credits, and so that what a hold kept back lapses
 * after it.
 */
export class MonthlyCredits {
  private readonly options: MonthlyCreditsOptions;
  private month: Month | undefined;
  /** Workspaces that have had this month's credits. */
  private readonly served = new Set<string>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(options: MonthlyCreditsOptions) {
    this.options = options;
  }

  /** Runs every minute from now on. */
  start(): void {
    this.timer = setInterval(() => {
      if (this.options.isLeader?.() === false) return;
      this.running = this.running.then(() => this.run());
    }, minuteMs);
  }

  /** Resolves when a run that is under way has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }

  /** Does everything that is due; what the database refuses is tried again the next time. */
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
    // By their ids: a grant of the month before may have come to stand in this one.
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
    // Any outcome means that this month's plan credits are granted: an older grant of them may name
    // another plan.
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
