import type { Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { Purse, Withdrawal } from "../ledger/ledger-port.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { monthOf } from "../ledger/month.ts";
import { bucketAccount, operatorAccounts, transferRows } from "../ledger/transfer.ts";

interface Movement extends Withdrawal {
  kind: "refund" | "expiry";
  reference: string | null;
  /** Returns rows to commit together with the transfer, where anything is taken. */
  alongside?: ((taken: { takenNano: bigint; atMs: number }) => CommitUnit["inserts"]) | undefined;
}

/** The credits that a refund takes back. */
interface Refund extends Omit<Movement, "bucket" | "kind" | "mostNano" | "month"> {
  amountNano: bigint;
}

/**
 * Takes credits from buckets without a request, never below zero and never what a hold counts on.
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
   * Takes back bought credits whose payment was refunded or disputed: as much of the amount as is
   * present and not held. Resolves with the amount taken, once that is durable. The id is the
   * idempotency key; a repetition rejects.
   */
  refund({ amountNano, ...refund }: Refund): Promise<bigint> {
    return this.move({ ...refund, bucket: "topup", kind: "refund", mostNano: amountNano });
  }

  /**
   * Takes back what is left of past months' monthly credits. What a hold counts on stays until the
   * hold is settled or freed, so this is repeated. Resolves with the amount taken, once that is
   * durable.
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
   * Takes the money from memory as soon as it is requested, and returns it where the database
   * refuses.
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
