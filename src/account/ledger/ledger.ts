import { dayMs, type Clock } from "../../platform/lib/clock.ts";
import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import { addFresh, availableOf, balanceOf, countedWithin, type AccountBook, type WorkspaceAccount } from "./account-book.ts";
import { chargeRows, splitOverBuckets } from "./charge-rows.ts";
import { monthOf } from "./month.ts";
import { transferRows, bucketAccount, operatorAccounts, type Bucket, type TransferKind } from "./transfer.ts";

/** A spending limit of a key, measured over a rolling window. */
export interface KeyLimit {
  limitNano: bigint;
  windowHours: number;
}

/** A key that a request is charged to, with its limit. */
export interface SpendingKey {
  keyId: string;
  keyLimit: KeyLimit | null;
  /** What callers' own provider keys pay counts against the limit, at list price. */
  countsByok?: boolean;
}

export interface ReserveRequest extends SpendingKey {
  /** Id of the hold; the generation id. */
  holdId: string;
  workspaceId: string;
  /** The key that made this one, where one did: the spend counts against its limit too. */
  parent?: SpendingKey | undefined;
  /** The worst case that the request can reach. */
  ceilingNano: bigint;
  /** The worst case at list price where the caller's own provider key pays; absent where none may serve. */
  byokNano?: bigint;
}

export type ReserveOutcome =
  | { ok: true; heldNano: bigint; balanceNano: bigint }
  | { ok: false; reason: "insufficient_balance" | "key_limit" | "exists"; balanceNano: bigint };

export interface PostRequest {
  holdId: string;
  /** What the usage costs; more than the hold is charged as far as the balance bears it. */
  amountNano: bigint;
  /** The list price of what the caller's own provider key paid; nothing of it is charged. */
  byokNano?: bigint;
  /** What is to be committed together with the charge, such as the generation record and what counts it. */
  alongside: (posted: PostedCharge) => CommitUnit;
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
  parentKeyId: string | undefined;
  heldNano: bigint;
  /** What is held of the limits of the key and of the one that made it. */
  keyHeldNano: bigint;
  parentHeldNano: bigint;
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
    const balanceNano = balanceOf(account);
    if (this.holds.has(request.holdId)) return { ok: false, reason: "exists", balanceNano };
    let { ceilingNano: heldNano, byokNano = 0n } = request;
    if (heldNano > 0n) {
      const available = availableOf(account);
      if (available <= 0n) return { ok: false, reason: "insufficient_balance", balanceNano };
      if (available < heldNano) heldNano = available;
    }
    for (const key of [request, request.parent]) {
      if (key === undefined || (heldNano === 0n && (byokNano === 0n || !key.countsByok))) continue;
      const left = this.leftOf(key);
      if (left === undefined) continue;
      if (left <= 0n) return { ok: false, reason: "key_limit", balanceNano };
      if (left < heldNano) heldNano = left;
      if (key.countsByok && left < byokNano) byokNano = left;
    }
    // Either the platform's credential serves or the caller's own: of a limit that counts both, the dearer one is held.
    const heldOf = (key: SpendingKey | undefined): bigint => (key?.countsByok && byokNano > heldNano ? byokNano : heldNano);
    const hold: Hold = {
      workspaceId: request.workspaceId, keyId: request.keyId, parentKeyId: request.parent?.keyId,
      heldNano, keyHeldNano: heldOf(request), parentHeldNano: heldOf(request.parent), reservedAtMs: this.clock.monotonicMs(),
    };
    this.addHeld(hold, 1n);
    this.holds.set(request.holdId, hold);
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
    const { byokNano = 0n } = request;
    this.apply(account, hold, { parts, amountNano: chargedNano, byokNano, nowMs });
    try {
      const rows = chargeRows({ chargeId: request.holdId, ...hold, parts, posted, byokNano, nowMs });
      const alongside = request.alongside(posted);
      await this.commits.commit({ inserts: [...rows.inserts, ...alongside.inserts], adds: [...rows.adds, ...alongside.adds] });
    } catch (error) {
      this.apply(account, hold, {
        parts: { monthlyNano: -parts.monthlyNano, topupNano: -parts.topupNano }, amountNano: -chargedNano, byokNano: -byokNano, nowMs,
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
    /** What is to be committed together with the transfer. */
    alongside?: (atMs: number) => CommitUnit["inserts"];
  }): Promise<void> {
    const atMs = this.clock.nowMs();
    const from = request.kind === "topup" ? operatorAccounts.payments : operatorAccounts.grants;
    const rows = transferRows({
      id: request.id, from, to: bucketAccount(request.workspaceId, request.bucket),
      amountNano: request.amountNano, kind: request.kind, reference: request.reference, atMs,
    });
    await this.commits.commit({ inserts: [rows.insert, ...request.alongside?.(atMs) ?? []], adds: rows.adds });
    const account = this.book.workspace(request.workspaceId);
    if (request.bucket === "topup") account.topupNano += request.amountNano;
    else {
      account.monthlyNano += request.amountNano;
      addFresh(account, { month: monthOf(atMs), amountNano: request.amountNano });
    }
  }

  private release(holdId: string): Hold | undefined {
    const hold = this.holds.get(holdId);
    if (hold === undefined) return undefined;
    this.holds.delete(holdId);
    if (this.holds.size === 0) for (const resolve of this.onceNoHoldIsOpen.splice(0)) resolve();
    this.addHeld(hold, -1n);
    return hold;
  }

  /** What is left of a key's limit; undefined where it has none. */
  private leftOf({ keyId, keyLimit, countsByok = false }: SpendingKey): bigint | undefined {
    if (keyLimit === null) return undefined;
    const key = this.book.key(keyId);
    const { limitNano, windowHours } = keyLimit;
    return limitNano - countedWithin(key, { windowHours, countsByok, nowMs: this.clock.nowMs() }) - key.heldNano;
  }

  /** Adds a hold to what is held, or with -1 takes it off again. */
  private addHeld({ workspaceId, keyId, parentKeyId, ...held }: Hold, sign: 1n | -1n): void {
    this.book.workspace(workspaceId).heldNano += sign * held.heldNano;
    this.book.key(keyId).heldNano += sign * held.keyHeldNano;
    if (parentKeyId !== undefined) this.book.key(parentKeyId).heldNano += sign * held.parentHeldNano;
  }

  private apply(
    account: WorkspaceAccount,
    hold: Hold,
    change: { parts: { monthlyNano: bigint; topupNano: bigint }; amountNano: bigint; byokNano: bigint; nowMs: number },
  ): void {
    account.monthlyNano -= change.parts.monthlyNano;
    account.topupNano -= change.parts.topupNano;
    account.usedNano += change.amountNano;
    const day = Math.floor(change.nowMs / dayMs);
    if (day > account.day) {
      account.day = day;
      account.dayNano = 0n;
    }
    // A charge of yesterday that is taken back today is no part of today's sum.
    if (day === account.day) account.dayNano += change.amountNano;
    for (const keyId of [hold.keyId, hold.parentKeyId]) {
      if (keyId === undefined) continue;
      this.book.key(keyId).spend.add(change.nowMs, change.amountNano);
      if (change.byokNano !== 0n) this.book.byokSpend(keyId).add(change.nowMs, change.byokNano);
    }
  }
}
