import { expect, test } from "bun:test";
import { lifeOf } from "../../../dashboard/src/lib/balance-life.ts";

/** Two days before the end of November. */
const nowMs = Date.parse("2026-11-29T00:00:00Z");

test.each([
  // Without spending there is no mean to go by.
  { monthly: 100, toppedUp: 0, daily: 0, text: "" },
  // What is left of monthly credits expires with the month.
  { monthly: 512, toppedUp: 0, daily: 1, text: " · $510.00 expires in about 2 days" },
  { monthly: 1, toppedUp: 0, daily: 1, text: " · lasts about a day" },
  { monthly: 512, toppedUp: 30, daily: 1, text: " · lasts about 32 days" },
  { monthly: 1, toppedUp: 30, daily: 1, text: " · lasts about 31 days" },
  { monthly: 0, toppedUp: 10_000, daily: 1, text: " · lasts more than two years" },
])(
  "$monthly monthly and $toppedUp at $daily a day: $text",
  ({ monthly, toppedUp, daily, text }) => {
    expect(lifeOf({ monthly_balance: monthly, topup_balance: toppedUp }, daily, nowMs)).toBe(text);
  },
);
