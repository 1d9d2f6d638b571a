import { dayMs } from "../../platform/kernel/clock.ts";

/** What a budget can be about. */
export const budgetScopes = ["workspace", "key", "user", "model", "provider"] as const;
export type BudgetScope = (typeof budgetScopes)[number];

/** What a budget does: it only reports what is spent, or also refuses what would cost more. */
export const budgetActions = ["alert", "block"] as const;
export type BudgetAction = (typeof budgetActions)[number];

/** How long a budget lasts before it begins again, by the calendar (UTC); weeks begin on Monday. */
export const budgetPeriods = ["daily", "weekly", "monthly"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Who gets the alerts. */
export interface BudgetAlerts {
  /** Of people in the workspace. */
  emails: readonly string[];
  webhookUrl: string | null;
}

/** An amount that is meant to be enough for a period, and with the action `block` has to be. */
export interface Budget extends BudgetAlerts {
  /** `bud_` id. */
  id: string;
  workspaceId: string;
  name: string;
  scope: BudgetScope;
  /** Id of the key, user, model or provider; null for the workspace. */
  subject: string | null;
  period: BudgetPeriod;
  action: BudgetAction;
  limitNano: bigint;
  /** Percent of the limit at which an alert is sent, in rising order. */
  thresholds: readonly number[];
  /** Which secret signs webhooks; counts the times that it was rotated. */
  secretVersion: number;
  createdAtMs: number;
  updatedAtMs: number | null;
}

/** A stretch of time; the end is exclusive. */
export interface Span {
  startMs: number;
  endMs: number;
}

/** 1970-01-01 was a Thursday. */
const daysSinceMonday = (day: number): number => (day + 3) % 7;

/** The period that a wall time lies in. */
export function periodAt(period: BudgetPeriod, nowMs: number): Span {
  const day = Math.floor(nowMs / dayMs);
  if (period === "monthly") {
    const date = new Date(nowMs);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    return { startMs: Date.UTC(year, month, 1), endMs: Date.UTC(year, month + 1, 1) };
  }
  const first = period === "daily" ? day : day - daysSinceMonday(day);
  return { startMs: first * dayMs, endMs: (first + (period === "daily" ? 1 : 7)) * dayMs };
}

/** The thresholds that an amount has reached. */
export const reachedThresholds = (
  { limitNano, thresholds }: Pick<Budget, "limitNano" | "thresholds">,
  spentNano: bigint,
): number[] => thresholds.filter((percent) => spentNano * 100n >= limitNano * BigInt(percent));

/**
 * What a request counts for: its workspace, keys and user, and the models and providers that cost
 * credits.
 */
interface Spender {
  keyId: string;
  parentId: string | undefined;
  userId: string;
  models: readonly string[];
  providers: readonly string[];
}

/** A blocking budget in the period of a day. */
export interface BudgetBound {
  budget: Budget;
  /**
   * Names the sum that the budget bounds: `tag~first day~day after the last`. Budgets of one
   * subject and period share it.
   */
  counter: string;
}

const tag = (scope: Budget["scope"], subject: string): string =>
  `${scope}:${encodeURIComponent(subject).replaceAll("~", "%7E")}`;
const workspaceTag = "workspace";
const tagOf = ({ scope, subject }: Pick<Budget, "scope" | "subject">): string =>
  subject === null ? workspaceTag : tag(scope, subject);

/**
 * The subjects of budgets that a request counts for.
 * @example budgetTags({ keyId: "key_1", userId: "usr_1", models: ["acme/large"], ... })
 * // ["workspace", "key:key_1", "user:usr_1", "model:acme%2Flarge"]
 */
export const budgetTags = ({ keyId, parentId, userId, models, providers }: Spender): string[] => [
  workspaceTag,
  tag("key", keyId),
  ...(parentId === undefined ? [] : [tag("key", parentId)]),
  tag("user", userId),
  ...new Set(models.map((model) => tag("model", model))),
  ...new Set(providers.map((provider) => tag("provider", provider))),
];

/** Budgets that bound holds, in memory: a request of a workspace without any costs one look-up. */
export class BlockingBudgets {
  /** Called with the workspace whose budgets changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly byWorkspace = new Map<string, readonly Budget[]>();

  /** Whether a workspace has any. */
  has(workspaceId: string): boolean {
    return this.byWorkspace.has(workspaceId);
  }

  /** Those that bound what counts for some of the tags on a day, counted from the epoch. */
  boundsOf(workspaceId: string, tags: readonly string[], day: number): BudgetBound[] {
    return (this.byWorkspace.get(workspaceId) ?? [])
      .filter((budget) => tags.includes(tagOf(budget)))
      .map((budget) => ({ budget, counter: counterOf(budget, day) }));
  }

  /** Puts a budget in force, or takes it out of force where it does not block. */
  put(budget: Budget): void {
    const others = (this.byWorkspace.get(budget.workspaceId) ?? []).filter(
      ({ id }) => id !== budget.id,
    );
    this.replaceWorkspace(
      budget.workspaceId,
      budget.action === "block" ? [...others, budget] : others,
    );
    this.onChange(budget.workspaceId);
  }

  remove({ id, workspaceId }: Budget): void {
    this.replaceWorkspace(
      workspaceId,
      (this.byWorkspace.get(workspaceId) ?? []).filter((budget) => budget.id !== id),
    );
    this.onChange(workspaceId);
  }

  /** Puts a workspace's blocking budgets in place of those that it had. */
  replaceWorkspace(workspaceId: string, budgets: readonly Budget[]): void {
    if (budgets.length === 0) this.byWorkspace.delete(workspaceId);
    else this.byWorkspace.set(workspaceId, budgets);
  }
}

/** The name of the sum that a budget bounds on a day. */
export function counterOf(
  budget: Pick<Budget, "scope" | "subject" | "period">,
  day: number,
): string {
  const { startMs, endMs } = periodAt(budget.period, day * dayMs);
  return `${tagOf(budget)}~${startMs / dayMs}~${endMs / dayMs}`;
}

/** What the name of a sum says. */
export function readCounter(counter: string): { tag: string; firstDay: number; endDay: number } {
  const [name = "", firstDay, endDay] = counter.split("~");
  return { tag: name, firstDay: Number(firstDay), endDay: Number(endDay) };
}
