import { dayMs } from "../../platform/lib/clock.ts";

/** What a budget can be about. */
export const budgetScopes = ["workspace", "key", "user", "model", "provider"] as const;
export type BudgetScope = (typeof budgetScopes)[number];

/** What a budget does: it only reports what is spent, or also refuses what would cost more. */
export const budgetActions = ["alert", "block"] as const;
export type BudgetAction = (typeof budgetActions)[number];

/** How long a budget lasts before it begins anew, by the calendar (UTC); weeks begin on Monday. */
export const budgetPeriods = ["daily", "weekly", "monthly"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Who is told. */
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
  /** Percent of the limit at which somebody is told, in rising order. */
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
