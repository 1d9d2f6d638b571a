import type { Clock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { Purse, Withdrawal } from "../ledger/ledger-port.ts";
import { monthOf } from "../ledger/month.ts";
import { bucketAccount, operatorAccounts, transferRows } from "../ledger/transfer.ts";

interface Movement extends Withdrawal {
  kind: "refund" | "expiry";
  reference: string | null;
  /** What is to be committed together with the transfer, where anything is taken. */
  alongside?: ((taken: { takenNano: bigint; atMs: number }) => CommitUnit["inserts"]) | undefined;
}

/** What a refund takes back. */
interface Refund extends Omit<Movement, "bucket" | "kind" | "mostNano" | "month"> {
  amountNano: bigint;
}

/**
 * Takes credits out of buckets without a request: never below zero, and never what a hold counts
 * on.
 */
export class Withdrawals {
  private readonly purse: Purse;
  private readonly commits: CommitQueue;
  private readonly clock: Clock;

  constructor(options: { purse: Purse; commits: CommitQueue; clock: Clock }) {
    this.purse = options.purse;
    this.commits = options.commits;
    this.clock = options.clock;
  }

  /**
   * Takes bought credits back, since their payment was refunded or disputed: as much of the amount
   * as is there and free. Tells what was taken, once it is durable. The id is the idempotency key;
   * a second one rejects.
   */
  refund({ amountNano, ...refund }: Refund): Promise<bigint> {
    return this.move({ ...refund, bucket: "topup", kind: "refund", mostNano: amountNano });
  }

  /**
   * Takes back what is left of the monthly credits of months that are over. What a hold counts on
   * stays until the hold is settled or freed, so this is done again from time to time. Tells what
   * was taken, once it is durable.
   */
  lapse(workspaceId: string): Promise<bigint> {
    const nowMs = this.clock.nowMs();
    return this.move({
      id: newId("txn", nowMs),
      workspaceId,
      bucket: "monthly",
      month: monthOf(nowMs),
      kind: "expiry",
      reference: null,
    });
  }

  /**
   * The money is gone from the moment on that it is asked for; where the database refuses, it is
   * back.
   */
  private async move(movement: Movement): Promise<bigint> {
    const { id, workspaceId, bucket, kind, reference, alongside } = movement;
    const taking = this.purse.take(movement);
    const { takenNano, committed, undo } = taking instanceof Promise ? await taking : taking;
    if (takenNano <= 0n) return 0n;
    const atMs = this.clock.nowMs();
    const rows = transferRows({
      id,
      kind,
      reference,
      amountNano: takenNano,
      atMs,
      from: bucketAccount(workspaceId, bucket),
      to: kind === "refund" ? operatorAccounts.payments : operatorAccounts.grants,
    });
    try {
      await this.commits.commit({
        inserts: [rows.insert, ...(alongside?.({ takenNano, atMs }) ?? [])],
        adds: rows.adds,
      });
    } catch (error) {
      undo();
      throw error;
    }
    committed();
    return takenNano;
  }
}
