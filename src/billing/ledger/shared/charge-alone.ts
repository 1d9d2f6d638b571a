import { isOverdrawn } from "../../../platform/storage/storage-error.ts";
import { type ChargeParts, splitOverBuckets } from "../transfer.ts";
import type { PostedCharge, PostOutcome } from "../ledger-port.ts";
import type { Balances } from "./account-readings.ts";

/**
 * The most attempts. Other gateways may spend the bucket that was read first, but in each round at
 * least one gateway succeeds.
 */
const roundsMax = 32;

/** The database side of a charge without the shared server. */
export interface LoneCharge {
  durable(): Promise<Balances>;
  /**
   * Commits the charge. Rejects with an error that `isOverdrawn` recognizes where a bucket no
   * longer has the amount.
   */
  commit(charge: { parts: ChargeParts; balanceNano: bigint }): Promise<PostOutcome>;
}

/**
 * Charges a hold by the balances in the database, while the holds of other gateways cannot be read.
 * It never charges more than the hold, since no other request counts on that amount. The database
 * refuses a charge that would make a bucket negative, and then the balances are read again.
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

/** Returns the posted charge: the amount that the buckets pay, and the uncollected rest. */
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
