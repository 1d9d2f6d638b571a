import { dayMs, type Clock } from "../../platform/lib/clock.ts";
import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import { availableOf, balanceOf, type AccountBook, type WorkspaceAccount } from "./account-book.ts";
import { chargeRows, splitOverBuckets } from "./charge-rows.ts";
import { transferRows, bucketAccount, operatorAccounts, type Bucket, type TransferKind } from "./transfer.ts";

/** A spending limit of a key, measured over a rolling window. */
export interface KeyLimit {
  limitNano: bigint;
  windowHours: number;
}

export interface ReserveRequest {
  /** Id of the hold; the generation id. */
  holdId: string;
  workspaceId: string;
  keyId: string;
  keyLimit: KeyLimit | null;
  /** The worst case that the request can reach. */
  ceilingNano: bigint;
}

export type ReserveOutcome =
  | { ok: true; heldNano: bigint; balanceNano: bigint }
  | { ok: false; reason: "insufficient_balance" | "key_limit" | "exists"; balanceNano: bigint };

export interface PostRequest {
  holdId: string;
  /** What the usage costs; more than the hold is charged as far as the balance bears it. */
  amountNano: bigint;
  /** Rows that are to be committed together with the charge, such as the generation record. */
  alongside: (posted: PostedCharge) => CommitUnit["inserts"];
}

/** A charge as it stands after posting. */
export interface PostedCharge {
  chargedNano: bigint;
  /** What the balance could not bear, booked to the operator. */
  uncollectedNano: bigint;
  heldNano: bigint;
  balanceAfterNano: bigint;
}

export type PostOutcome = ({ ok: true } & PostedCharge) | { ok: false; reason: "already_settled" };

interface Hold {
  workspaceId: string;
  keyId: string;
  heldNano: bigint;
  reservedAtMs: number;
}

/** How long a hold may stand before the backstop frees it: longer than any request may run. */
const holdLifetimeMs = 2 * 60 * 60 * 1000;

/**
 * Two-phase charging: reserve, then post or void; expiry is the backstop. Holds live in memory, so a
 * crash frees them; charges are durable before `post` settles. Outcomes are named, never thrown.
 */
export class Ledger {
  readonly book: AccountBook;
  private readonly holds = new Map<string, Hold>();
  private onceNoHoldIsOpen: (() => void)[] = [];
  private readonly commits: CommitQueue;
  private readonly clock: Clock;

  constructor(options: { book: AccountBook; commits: CommitQueue; clock: Clock }) {
    this.book = options.book;
    this.commits = options.commits;
    this.clock = options.clock;
  }

  get openHoldCount(): number {
    return this.holds.size;
  }

  /** Resolves once every hold is settled or freed; the commits of those that were settled are queued by then. */
  untilNoHoldIsOpen(): Promise<void> {
    if (this.holds.size === 0) return Promise.resolve();
    return new Promise((resolve) => void this.onceNoHoldIsOpen.push(resolve));
  }

  /** Takes a hold of at most `ceilingNano`, clamped to what is left; refused only when nothing is. */
  reserve(request: ReserveRequest): ReserveOutcome {
    const account = this.book.workspace(request.workspaceId);
    const key = this.book.key(request.keyId);
    const balanceNano = balanceOf(account);
    if (this.holds.has(request.holdId)) return { ok: false, reason: "exists", balanceNano };
    let heldNano = request.ceilingNano;
    if (heldNano > 0n) {
      const available = availableOf(account);
      if (available <= 0n) return { ok: false, reason: "insufficient_balance", balanceNano };
      if (available < heldNano) heldNano = available;
      if (request.keyLimit !== null) {
        const { limitNano, windowHours } = request.keyLimit;
        const left = limitNano - key.spend.spentWithin(windowHours, this.clock.nowMs()) - key.heldNano;
        if (left <= 0n) return { ok: false, reason: "key_limit", balanceNano };
        if (left < heldNano) heldNano = left;
      }
    }
    account.heldNano += heldNano;
    key.heldNano += heldNano;
    this.holds.set(request.holdId, {
      workspaceId: request.workspaceId, keyId: request.keyId, heldNano, reservedAtMs: this.clock.monotonicMs(),
    });
    return { ok: true, heldNano, balanceNano };
  }

  /**
   * Charges a hold and frees the rest. Settles when the charge is durable; rejects when the database
   * refused, and then the charge does not stand and the money is back.
   */
  async post(request: PostRequest): Promise<PostOutcome> {
    const hold = this.release(request.holdId);
    if (hold === undefined) return { ok: false, reason: "already_settled" };
    const account = this.book.workspace(hold.workspaceId);
    // Other requests' holds are theirs; beyond its own hold a charge may only draw on what is free.
    const bearable = availableOf(account);
    const chargedNano = request.amountNano < bearable ? request.amountNano : bearable < 0n ? 0n : bearable;
    const posted: PostedCharge = {
      chargedNano,
      uncollectedNano: request.amountNano - chargedNano,
      heldNano: hold.heldNano,
      balanceAfterNano: balanceOf(account) - chargedNano,
    };
    const nowMs = this.clock.nowMs();
    const parts = splitOverBuckets(account, chargedNano);
    this.apply(account, hold, { parts, amountNano: chargedNano, nowMs });
    try {
      const rows = chargeRows({ chargeId: request.holdId, ...hold, parts, posted, nowMs });
      await this.commits.commit({ inserts: [...rows.inserts, ...request.alongside(posted)], adds: rows.adds });
    } catch (error) {
      this.apply(account, hold, {
        parts: { monthlyNano: -parts.monthlyNano, topupNano: -parts.topupNano }, amountNano: -chargedNano, nowMs,
      });
      throw error;
    }
    return { ok: true, ...posted };
  }

  /** Frees a hold without a charge. */
  void(holdId: string): "ok" | "already_settled" {
    return this.release(holdId) === undefined ? "already_settled" : "ok";
  }

  /** Frees holds that nobody settled; each one is a mistake of ours that the caller logs. */
  expire(): string[] {
    const oldestMs = this.clock.monotonicMs() - holdLifetimeMs;
    const expired = [...this.holds].filter(([, hold]) => hold.reservedAtMs < oldestMs).map(([id]) => id);
    for (const id of expired) this.release(id);
    return expired;
  }

  /** Adds credits to a bucket; in force for the very next request once it is durable. */
  async credit(request: {
    id: string; workspaceId: string; bucket: Bucket; amountNano: bigint; kind: TransferKind; reference: string | null;
  }): Promise<void> {
    const from = request.kind === "topup" ? operatorAccounts.payments : operatorAccounts.grants;
    const rows = transferRows({
      id: request.id, from, to: bucketAccount(request.workspaceId, request.bucket),
      amountNano: request.amountNano, kind: request.kind, reference: request.reference, atMs: this.clock.nowMs(),
    });
    await this.commits.commit({ inserts: [rows.insert], adds: rows.adds });
    const account = this.book.workspace(request.workspaceId);
    if (request.bucket === "monthly") account.monthlyNano += request.amountNano;
    else account.topupNano += request.amountNano;
  }

  private release(holdId: string): Hold | undefined {
    const hold = this.holds.get(holdId);
    if (hold === undefined) return undefined;
    this.holds.delete(holdId);
    if (this.holds.size === 0) for (const resolve of this.onceNoHoldIsOpen.splice(0)) resolve();
    this.book.workspace(hold.workspaceId).heldNano -= hold.heldNano;
    this.book.key(hold.keyId).heldNano -= hold.heldNano;
    return hold;
  }

  private apply(
    account: WorkspaceAccount,
    hold: Hold,
    change: { parts: { monthlyNano: bigint; topupNano: bigint }; amountNano: bigint; nowMs: number },
  ): void {
    account.monthlyNano -= change.parts.monthlyNano;
    account.topupNano -= change.parts.topupNano;
    account.usedNano += change.amountNano;
    const day = Math.floor(change.nowMs / dayMs);
    if (account.day !== day) {
      account.day = day;
      account.dayNano = 0n;
    }
    account.dayNano += change.amountNano;
    const key = this.book.key(hold.keyId);
    key.lastUsedAtMs = change.nowMs;
    key.spend.add(change.nowMs, change.amountNano);
  }
}
