import { isOverdrawn } from "../../../platform/storage/storage-error.ts";
import { type ChargeParts, splitOverBuckets } from "../transfer.ts";
import type { PostedCharge, PostOutcome } from "../ledger.ts";
import type { Balances } from "./account-readings.ts";

/**
 * Others that charge at the same moment may spend the bucket that was read first; each round at
 * least one of them succeeds.
 */
const roundsMax = 32;

/** What is charged, and where. */
export interface LoneCharge {
  durable(): Promise<Balances>;
  /**
   * Commits the charge; rejects with an error that `isOverdrawn` knows where a bucket has less by
   * then.
   */
  commit(charge: { parts: ChargeParts; balanceNano: bigint }): Promise<PostOutcome>;
}

/**
 * Charges a hold by what the database has, while what is held beside it cannot be seen: so never
 * more than the hold, which no limit and no other request counts on. The database refuses what
 * would take a bucket below zero; then it is read again.
 */
export async function chargeAlone(
  { amountNano, heldNano }: { amountNano: bigint; heldNano: bigint },
  { durable, commit }: LoneCharge,
): Promise<PostOutcome> {
  for (let round = 1; ; round += 1) {
    const read = await durable();
    const balanceNano = read.monthlyNano + read.topupNano;
    const parts = splitOverBuckets(
      read,
      least(amountNano, heldNano, balanceNano > 0n ? balanceNano : 0n),
    );
    const chargedNano = parts.monthlyNano + parts.topupNano;
    try {
      return await commit({ parts, balanceNano: balanceNano - chargedNano });
    } catch (error) {
      if (!isOverdrawn(error) || round >= roundsMax) throw error;
    }
  }
}

const least = (...amounts: readonly bigint[]): bigint =>
  amounts.reduce((smallest, each) => (each < smallest ? each : smallest));

/** What is posted of a charge: what its parts pay, and the rest. */
export function postedOf(
  { amountNano }: { amountNano: bigint },
  {
    hold: { heldNano },
    parts,
    balanceNano,
  }: { hold: { heldNano: bigint }; parts: ChargeParts; balanceNano: bigint },
): PostedCharge {
  const chargedNano = parts.monthlyNano + parts.topupNano;
  return {
    chargedNano,
    uncollectedNano: amountNano - chargedNano,
    heldNano,
    balanceAfterNano: balanceNano,
  };
}
