import type { Clock } from "../../platform/lib/clock.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import { availableOf, lapsedOf, type AccountBook } from "./account-book.ts";
import { monthOf } from "./month.ts";
import { bucketAccount, operatorAccounts, transferRows, type Bucket } from "./transfer.ts";

interface Movement {
  id: string;
  workspaceId: string;
  bucket: Bucket;
  amountNano: bigint;
  kind: "refund" | "expiry";
  reference: string | null;
  /** What is to be committed together with the transfer, where anything is taken. */
  alongside?: ((taken: { takenNano: bigint; atMs: number }) => CommitUnit["inserts"]) | undefined;
}

/** Takes credits out of buckets without a request: never below zero, and never what a hold counts on. */
export class Withdrawals {
  private readonly book: AccountBook;
  private readonly commits: CommitQueue;
  private readonly clock: Clock;

  constructor(options: { book: AccountBook; commits: CommitQueue; clock: Clock }) {
    this.book = options.book;
    this.commits = options.commits;
    this.clock = options.clock;
  }

  /**
   * Takes bought credits back, since their payment was refunded or disputed: as much of the amount as is there
   * and free. Tells what was taken, once it is durable. The id is the idempotency key; a second one rejects.
   */
  async refund({ id, workspaceId, amountNano, reference, alongside }: Omit<Movement, "bucket" | "kind">): Promise<bigint> {
    const account = this.book.workspace(workspaceId);
    const takenNano = least(amountNano, account.topupNano, availableOf(account));
    await this.move({ id, workspaceId, bucket: "topup", amountNano: takenNano, kind: "refund", reference, alongside });
    return takenNano;
  }

  /**
   * Takes back what is left of the monthly credits of months that are over. What a hold counts on stays until
   * the hold is settled or freed, so this is done again from time to time. Tells what was taken, once it is durable.
   */
  async lapse(workspaceId: string): Promise<bigint> {
    const account = this.book.workspace(workspaceId);
    const nowMs = this.clock.nowMs();
    const amountNano = least(lapsedOf(account, monthOf(nowMs)), availableOf(account));
    await this.move({ id: newId("txn", nowMs), workspaceId, bucket: "monthly", amountNano, kind: "expiry", reference: null });
    return amountNano;
  }

  /** The money is gone from the moment on that it is asked for; where the database refuses, it is back. */
  private async move({ workspaceId, bucket, amountNano, kind, alongside, ...rest }: Movement): Promise<void> {
    if (amountNano <= 0n) return;
    this.take(workspaceId, { bucket, amountNano });
    const atMs = this.clock.nowMs();
    const rows = transferRows({
      ...rest, kind, amountNano, atMs, from: bucketAccount(workspaceId, bucket),
      to: kind === "refund" ? operatorAccounts.payments : operatorAccounts.grants,
    });
    try {
      await this.commits.commit({ inserts: [rows.insert, ...alongside?.({ takenNano: amountNano, atMs }) ?? []], adds: rows.adds });
    } catch (error) {
      this.take(workspaceId, { bucket, amountNano: -amountNano });
      throw error;
    }
  }

  private take(workspaceId: string, { bucket, amountNano }: Pick<Movement, "bucket" | "amountNano">): void {
    const account = this.book.workspace(workspaceId);
    if (bucket === "monthly") account.monthlyNano -= amountNano;
    else account.topupNano -= amountNano;
  }
}

/** The least of some amounts, and never below zero. */
const least = (...amounts: bigint[]): bigint => {
  const smallest = amounts.reduce((one, other) => (other < one ? other : one));
  return smallest > 0n ? smallest : 0n;
};
