import type { CommitQueue, CommitUnit } from "../../src/platform/storage/commit-queue.ts";

/** A commit queue that keeps units in memory; `failNext` makes the database refuse once. */
export class MemoryCommits implements CommitQueue {
  readonly units: CommitUnit[] = [];
  failNext = false;
  readonly pendingCount = 0;
  readonly rejectedCount = 0;
  readonly stalled = false;

  admits(): boolean {
    return true;
  }

  commit(unit: CommitUnit): Promise<void> {
    if (this.failNext) {
      this.failNext = false;
      return Promise.reject(new Error("the database refused"));
    }
    this.units.push(unit);
    return Promise.resolve();
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Returns the sum of each account over all durable transfers; in a sound ledger, all accounts
   * together are zero.
   */
  balances(): Map<string, number> {
    const balances = new Map<string, number>();
    for (const unit of this.units) {
      for (const { statement, key, sums } of unit.adds) {
        if (statement.table !== "ledger_accounts") continue;
        const account = String(key[0]);
        balances.set(account, (balances.get(account) ?? 0) + (sums[0] ?? 0));
      }
    }
    return balances;
  }

  transferSum(account: string): number {
    let sum = 0;
    for (const { statement, values } of this.units.flatMap((unit) => unit.inserts)) {
      if (statement.table !== "transfers") continue;
      if (values[1] === account) sum -= Number(values[3]);
      if (values[2] === account) sum += Number(values[3]);
    }
    return sum;
  }
}
