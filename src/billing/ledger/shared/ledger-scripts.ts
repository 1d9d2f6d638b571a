import { plainWeight, type BudgetBound } from "../../budgets/budget.ts";
import type { SpendingKey, TightHold } from "../hold-rule.ts";
import { ledgerScript } from "./ledger-script.ts";
import announceText from "./scripts/announce.lua" with { type: "text" };
import confirmText from "./scripts/confirm.lua" with { type: "text" };
import forgetText from "./scripts/forget.lua" with { type: "text" };
import growText from "./scripts/grow.lua" with { type: "text" };
import postText from "./scripts/post.lua" with { type: "text" };
import renewText from "./scripts/renew.lua" with { type: "text" };
import reportText from "./scripts/report.lua" with { type: "text" };
import reserveText from "./scripts/reserve.lua" with { type: "text" };
import revertText from "./scripts/revert.lua" with { type: "text" };
import settledText from "./scripts/settled.lua" with { type: "text" };
import voidText from "./scripts/void.lua" with { type: "text" };
import withdrawText from "./scripts/withdraw.lua" with { type: "text" };

/**
 * Takes a hold, and holds in advance out of a 64th of what is free beyond it. Values:
 * - the id of the hold, and the hour
 * - the ceiling, the beginning, the least, and 1 where the hold takes an eighth; then the same at
 *   list price
 * - for the key and for its parent: the id (empty for none), the limit (-1 for none), the hours of
 *   its window, and 1 where it counts own provider keys
 * - the day, the tags that budgets count the hold by, and the name that rate windows set when they
 *   admitted the request (empty for none)
 * - the ids of the holds in advance, separated by commas, and the amount of each
 * - for each budget: the name of its sum, its limit, and the weight at which the sum counts
 * Returns the entry of the hold, the free amounts, the number of holds in advance, and their entry.
 */
export const reserveScript = ledgerScript("Reserve", reserveText);

/**
 * Raises a hold as far as the free amount allows. Values: its id, the hour, the amount; the keys as
 * in `reserveScript`; its entry, for a server that has lost it; then for each budget the name of
 * its sum, its limit, and its weight.
 */
export const growScript = ledgerScript("Grow", growText);

/**
 * Charges a hold and frees it. A second call returns the same. Values: its id, the hour, the
 * amount, and that at list price; the keys as the hold was taken with them; the day of the hold,
 * the tags that budgets count the charge by, and for each budget the name of its sum, its
 * limit, and its weight.
 */
export const postScript = ledgerScript("Post", postText);

/**
 * Takes credits out of a bucket. Values: the id, `monthly` or `topup`, the most (-1 for all), and
 * the month whose grants stay.
 */
export const withdrawScript = ledgerScript("Withdraw", withdrawText);

/** Frees holds. Values: their ids. */
export const voidScript = ledgerScript("Void", voidText);

/** Records that a charge is committed. Values: its id, its keys. */
export const confirmScript = ledgerScript("Confirm", confirmText);

/** Undoes a charge that the database refused. Values: its id. */
export const revertScript = ledgerScript("Revert", revertText);

/**
 * Books a charge of zero before credits are added, so that another process resolves it where this
 * one ends. Values: its id.
 */
export const announceScript = ledgerScript("Announce", announceText);

/**
 * Removes the figures of a workspace, because the database has changes that they lack. The next
 * request reads them again. Values: the ids of keys whose figures are removed as well.
 */
export const forgetScript = ledgerScript("Forget", forgetText);

/**
 * Ends a hold whose outcome was decided without the shared server. The next request reads the
 * database, and earlier scripts of the hold that arrive later change nothing. Values: its id, its
 * keys.
 */
export const settledScript = ledgerScript("Settled", settledText);

/**
 * Replaces holds with their committed charges. A figure that was read with the charge stays as it
 * is. Where a hold is missing, the next request reads the database. Values: for each charge the id,
 * what each bucket paid, its keys, the hour, the day of the hold, and the tags that budgets count
 * it by. Returns the balances, where they are known.
 */
export const reportScript = ledgerScript("Report", reportText);

/**
 * Renews the leases of holds and charges. A hold that was lost is restored, and the next request
 * reads the database, which may have its charge. Values: for each `h` or `c` followed by the id,
 * and the entry.
 */
export const renewScript = ledgerScript("Renew", renewText);

/** Returns the values of a hold's keys for the scripts. */
export const keyValues = ({
  key,
  parent,
}: {
  key: SpendingKey;
  parent: SpendingKey | undefined;
}): (string | number)[] =>
  [key, parent].flatMap((each) =>
    each === undefined
      ? ["", -1, 0, 0]
      : [
          each.keyId,
          String(each.keyLimit?.limitNano ?? -1n),
          each.keyLimit?.windowHours ?? 0,
          each.countsByok ? 1 : 0,
        ],
  );

/** Returns the values of budgets for the scripts. */
export const budgetValues = (bounds: readonly BudgetBound[]): string[] =>
  bounds.flatMap(({ budget: { limitNano }, counter, weight = plainWeight }) => [
    counter,
    String(limitNano),
    String(weight),
  ]);

/** Returns the values of a worst case for `reserveScript`. */
export function tightValues(
  ceilingNano: bigint,
  tight: (() => TightHold) | undefined,
): (string | number)[] {
  const { beginNano, leastNano, takesShare } = tight?.() ?? {
    beginNano: ceilingNano,
    leastNano: 1n,
    takesShare: false,
  };
  return [String(ceilingNano), String(beginNano), String(leastNano), takesShare ? 1 : 0];
}

/** Returns tags in the form in which the scripts search them. */
export const tagText = (tags: readonly string[]): string =>
  tags.length === 0 ? "" : `,${tags.join(",")},`;
