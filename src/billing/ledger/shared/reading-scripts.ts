import { ledgerScript } from "./ledger-script.ts";
import beginSumsText from "./scripts/begin-sums.lua" with { type: "text" };
import chargesSinceText from "./scripts/charges-since.lua" with { type: "text" };
import runBegunText from "./scripts/run-begun.lua" with { type: "text" };
import seedSumsText from "./scripts/seed-sums.lua" with { type: "text" };
import seedText from "./scripts/seed.lua" with { type: "text" };

/**
 * Returns the rest of a period that began when this script first ran. Values: the period in
 * milliseconds. The answer is in milliseconds too.
 */
export const runBegunScript = ledgerScript("RunBegun", runBegunText);

/**
 * Fills the absent figures from a reading of the database, unless there was a change since then
 * that the reading may lack. Values: the mark from before the reading; the balances as `m|t|fm|fn`;
 * JSON with the ids of the charges that the reading includes, and of the holds whose charges it
 * includes; then for each key its id, and JSON with hours and amounts.
 */
export const seedScript = ledgerScript("Seed", seedText);

/**
 * Begins a reading of budget sums. From now on confirmed charges are kept beside the open ones, so
 * that the reading can find out which of them it includes. Returns a mark, which concurrent
 * readings share.
 */
export const beginSumsScript = ledgerScript("BeginSums", beginSumsText);

/**
 * Returns the charges that a reading of sums may lack: the id and the entry of each, and for holds
 * the id and an empty text.
 */
export const chargesSinceScript = ledgerScript("ChargesSince", chargesSinceText);

/**
 * Fills budget sums from a reading, unless its mark is no longer the current one. Values: the mark;
 * JSON with the ids of the charges that the reading includes, and of the holds whose charges it
 * includes; then for each sum its name and the spend.
 */
export const seedSumsScript = ledgerScript("SeedSums", seedSumsText);
