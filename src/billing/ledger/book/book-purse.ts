import { type AccountBook, availableOf, lapsedOf } from "./account-book.ts";
import type { Purse, Taken, Withdrawal } from "../ledger-port.ts";

/** Takes credits out of the balances of a book that no other process shares. */
export class BookPurse implements Purse {
  constructor(private readonly book: AccountBook) {}

  take({ workspaceId, bucket, mostNano, month }: Withdrawal): Taken {
    const account = this.book.workspace(workspaceId);
    const name = bucket === "monthly" ? "monthlyNano" : "topupNano";
    const there =
      bucket === "monthly" && month !== undefined ? lapsedOf(account, month) : account[name];
    const takenNano = least(there, availableOf(account), mostNano ?? there);
    account[name] -= takenNano;
    return { takenNano, committed: () => undefined, undo: () => void (account[name] += takenNano) };
  }
}

/** Returns the smallest of some amounts, or zero where that is negative. */
const least = (...amounts: bigint[]): bigint => {
  const smallest = amounts.reduce((one, other) => (other < one ? other : one));
  return smallest > 0n ? smallest : 0n;
};
