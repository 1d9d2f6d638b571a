import { usd } from "./format.ts";

/** What is left, in USD, by how long it can be spent. */
interface Balance {
  /** Expires at the end of the month, in UTC. */
  monthly_balance: number;
  topup_balance: number;
}

/** A span of days as a person reads it. */
function spanOf(daysLeft: number): string {
  if (daysLeft > 730) return "more than two years";
  const whole = Math.floor(daysLeft);
  return whole < 1 ? "less than a day" : whole === 1 ? "about a day" : `about ${whole} days`;
}

const dayMs = 86_400_000;

/** Days until monthly credits expire, at the end of the month in UTC. */
function daysOfMonthLeft(nowMs: number): number {
  const now = new Date(nowMs);
  return (Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) - nowMs) / dayMs;
}

/**
 * How long the balance lasts at the mean of the last days. Monthly credits expire with the
 * month, however many are left.
 */
export function lifeOf(
  { monthly_balance: monthly, topup_balance: toppedUp }: Balance,
  daily: number,
  nowMs = Date.now(),
): string {
  if (daily <= 0) return "";
  const monthDays = daysOfMonthLeft(nowMs);
  const expires = monthly / daily > monthDays;
  if (expires && toppedUp === 0)
    return ` · ${usd(monthly - daily * monthDays)} expires in ${spanOf(monthDays)}`;
  const lasts = (expires ? monthDays : monthly / daily) + toppedUp / daily;
  return ` · lasts ${spanOf(lasts)}`;
}
