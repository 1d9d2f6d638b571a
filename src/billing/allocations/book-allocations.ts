import { availableOf, countedWithin, type AccountBook } from "../ledger/book/account-book.ts";
import type { SpendingKey } from "../ledger/hold-rule.ts";
import type { Clock } from "../../platform/kernel/clock.ts";

/** A part of the limits of keys that is set aside for a run. */
export interface Allocation {
  /** The run's id and the version of its limit, such as `run_1.1`. */
  id: string;
  workspaceId: string;
  /** The key or run that the amount is carved out of, and the key that created it. */
  keys: readonly [SpendingKey, ...SpendingKey[]];
  amountNano: bigint;
  /**
   * What the open runs of the first key have spent. It is counted in the balance already, which
   * bounds the runs of keys without a limit.
   */
  spentByRunsNano: bigint;
}

/** The end of an allocation: the part that was spent counts as the owner's own spending. */
export interface Release extends Pick<Allocation, "workspaceId" | "keys"> {
  amountNano: bigint;
  spentNano: bigint;
  /** The list price of what was used through own provider keys. */
  byokNano: bigint;
}

/** The outcome of an allocation: set aside, or what was free in place of it. */
export type AllocationOutcome =
  | { ok: true }
  | {
      ok: false;
      reason: "key_limit" | "insufficient_balance" | "away";
      freeNano: bigint;
      heldNano: bigint;
    };

/** What counts against the limit of a key, in nano-USD. */
export interface KeyFigures {
  spentNano: bigint;
  heldNano: bigint;
  /** What is set aside for open runs. */
  allocatedNano: bigint;
}

/**
 * The amounts that are set aside for runs. An open run counts in its owner's limit with its whole
 * limit, and in itself with what it spends; an ended one counts in its owner with what it spent.
 */
export interface Allocations {
  /** Sets an amount aside, whole or not at all. */
  allocate(allocation: Allocation): AllocationOutcome | Promise<AllocationOutcome>;
  /** Records that the run of an allocation is committed, or its higher limit. */
  committed(allocation: Allocation): Promise<void>;
  /** Gives an amount back whose run was not committed. */
  undo(allocation: Allocation): void;
  /** Gives back what a run left, or the part by which its limit was lowered. */
  release(release: Release): Promise<void>;
  /** Lets no further hold be taken on the limit of a run that has ended. */
  close(reference: { workspaceId: string; keyId: string }): Promise<void>;
  /** Returns what counts against the limit of a key. */
  figures(reference: { workspaceId: string; key: SpendingKey }): KeyFigures | Promise<KeyFigures>;
}

/** An allocated amount above every limit. */
export const blockedNano = 9_000_000_000_000_000n;

/** The allocations of one process. */
export class BookAllocations implements Allocations {
  private readonly book: AccountBook;
  private readonly clock: Clock;

  constructor({ book, clock }: { book: AccountBook; clock: Clock }) {
    this.book = book;
    this.clock = clock;
  }

  allocate({ workspaceId, keys, amountNano, spentByRunsNano }: Allocation): AllocationOutcome {
    let [freeNano, heldNano]: [bigint | undefined, bigint] = [undefined, 0n];
    for (const key of keys) {
      if (key.keyLimit === null) continue;
      const figures = this.figures({ key });
      const left =
        key.keyLimit.limitNano - figures.spentNano - figures.heldNano - figures.allocatedNano;
      if (freeNano !== undefined && freeNano <= left) continue;
      [freeNano, heldNano] = [left, figures.heldNano];
    }
    if (freeNano === undefined) {
      const account = this.book.workspace(workspaceId);
      const set = this.book.key(keys[0].keyId).allocatedNano - spentByRunsNano;
      const left = availableOf(account) - (set > 0n ? set : 0n);
      if (left < amountNano)
        return {
          ok: false,
          reason: "insufficient_balance",
          freeNano: left,
          heldNano: account.heldNano,
        };
    } else if (freeNano < amountNano) return { ok: false, reason: "key_limit", freeNano, heldNano };
    for (const { keyId } of keys) this.book.key(keyId).allocatedNano += amountNano;
    return { ok: true };
  }

  async committed(): Promise<void> {}

  undo({ keys, amountNano }: Pick<Allocation, "keys" | "amountNano">): void {
    for (const { keyId } of keys) this.book.key(keyId).allocatedNano -= amountNano;
  }

  async release(release: Release): Promise<void> {
    this.undo(release);
    for (const { keyId } of release.keys) {
      this.book.key(keyId).spend.add(this.clock.nowMs(), release.spentNano);
      if (release.byokNano > 0n)
        this.book.byokSpend(keyId).add(this.clock.nowMs(), release.byokNano);
    }
  }

  async close({ keyId }: { keyId: string }): Promise<void> {
    const account = this.book.key(keyId);
    if (account.allocatedNano < blockedNano) account.allocatedNano += blockedNano;
  }

  figures({ key: { keyId, keyLimit, countsByok = false } }: { key: SpendingKey }): KeyFigures {
    const account = this.book.key(keyId);
    const windowHours = keyLimit?.windowHours ?? 30 * 24;
    return {
      spentNano: countedWithin(account, { windowHours, countsByok, nowMs: this.clock.nowMs() }),
      heldNano: account.heldNano,
      allocatedNano: account.allocatedNano,
    };
  }
}
