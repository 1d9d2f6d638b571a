import { type Clock, dayMs } from "../../platform/kernel/clock.ts";
import { PassingMap } from "../../platform/kernel/passing/passing-map.ts";
import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { AdmittedUse, Budget, BudgetScope, CustomerPlans, Sender } from "../budgets/budget.ts";
import {
  type AccountBook,
  addFresh,
  availableOf,
  balanceOf,
  type BudgetUse,
  countedWithin,
  type WorkspaceAccount,
} from "./book/account-book.ts";
import type { BudgetCounters } from "./book/budget-counters.ts";
import {
  amountToHold,
  type ReserveOutcome,
  type ReserveRequest,
  type SpendingKey,
} from "./hold-rule.ts";
import {
  holdLifetimeMs,
  type LedgerPort,
  type PostedCharge,
  type Posting,
  type PostOutcome,
  type PostRequest,
  type Taken,
  type Withdrawal,
} from "./ledger-port.ts";
import { type Allocations, BookAllocations } from "../allocations/book-allocations.ts";
import { monthOf } from "./month.ts";
import {
  BookRequestCounts,
  type RequestCounts,
  type SettledRequests,
} from "../allocations/book-request-counts.ts";
import { chargeRows, creditUnit, splitOverBuckets, type CreditRequest } from "./transfer.ts";
import { BookPurse } from "./book/book-purse.ts";

interface Hold extends BudgetUse {
  /**
   * The key, and its parent where there is one. The limits of both apply to the hold and the
   * charge.
   */
  keys: readonly SpendingKey[];
  heldNano: bigint;
  /** The amount at list price that is held on limits which count the caller's own provider keys. */
  byokNano: bigint;
  reservedAtMs: number;
}

/**
 * The tightest limit of a hold: the amount that is free of it, and the amount that other requests
 * hold of it.
 */
interface Bound {
  freeNano: bigint;
  heldNano: bigint;
  reason: "insufficient_balance" | "key_limit" | "budget";
  budget?: Budget;
}

const noTags = (): readonly string[] => [];

const settledBefore: Posting<never> = {
  charge: undefined,
  durable: Promise.resolve({ ok: false, reason: "already_settled" }),
};

const noSenders: readonly Sender[] = [];

/** Returns the tags of a hold: the same ones from its first count on. */
function fixed(tags: (() => readonly string[]) | undefined): () => readonly string[] {
  if (tags === undefined) return noTags;
  let known: readonly string[] | undefined;
  return () => (known ??= tags());
}

/** An amount above every balance and limit. */
const maxNano = 2n ** 62n;

/**
 * The ledger of one process, which charges in two phases: reserve, then post or void. Holds live in
 * memory, so a crash frees them, and a hold that no request settles expires. Charges are durable
 * before `post` resolves. Expected failures are returned, never thrown.
 */
export class Ledger implements LedgerPort {
  readonly book: AccountBook;
  private readonly holds = new PassingMap<Hold>();
  private onceNoHoldIsOpen: (() => void)[] = [];
  private readonly commits: CommitQueue;
  private readonly clock: Clock;
  private readonly purse: BookPurse;
  private readonly budgets: BudgetCounters | undefined;
  readonly allocations: Allocations;

  constructor(options: {
    book: AccountBook;
    commits: CommitQueue;
    clock: Clock;
    budgets?: BudgetCounters;
  }) {
    this.book = options.book;
    this.purse = new BookPurse(options.book);
    this.commits = options.commits;
    this.clock = options.clock;
    this.budgets = options.budgets;
    this.allocations = new BookAllocations(options);
  }

  get openHoldCount(): number {
    return this.holds.size;
  }

  hasHold(holdId: string): boolean {
    return this.holds.has(holdId);
  }

  untilNoHoldIsOpen(): Promise<void> {
    if (this.holds.size === 0) return Promise.resolve();
    return new Promise((resolve) => void this.onceNoHoldIsOpen.push(resolve));
  }

  reserve(request: ReserveRequest): ReserveOutcome {
    const { holdId, workspaceId, ceilingNano, byokNano = 0n, parent } = request;
    const account = this.book.workspace(workspaceId);
    const balanceNano = balanceOf(account);
    if (this.holds.has(holdId))
      return { ok: false, reason: "exists", balanceNano, freeNano: 0n, heldNano: 0n };
    const keys = parent === undefined ? [request] : [request, parent];
    const use = {
      workspaceId,
      tags: fixed(request.tags),
      day: Math.floor(this.clock.nowMs() / dayMs),
    };
    let [heldNano, byokHeldNano, freeNano] = [0n, 0n, 0n];
    if (ceilingNano > 0n) {
      const bound = this.boundOf(account, keys, use);
      freeNano = bound.freeNano;
      const allowedNano = amountToHold({ freeNano, ceilingNano, tight: request.tight });
      if (allowedNano === undefined) return { ok: false, ...bound, balanceNano };
      heldNano = allowedNano;
    }
    const byokBound = byokNano > 0n ? this.byokBoundOf(keys) : undefined;
    if (byokBound !== undefined) {
      const allowedNano = amountToHold({
        freeNano: byokBound.freeNano,
        ceilingNano: byokNano,
        tight: request.byokTight,
      });
      if (allowedNano === undefined) return { ok: false, ...byokBound, balanceNano };
      byokHeldNano = allowedNano;
    }
    const hold: Hold = {
      workspaceId,
      tags: use.tags,
      day: use.day,
      keys,
      heldNano,
      byokNano: byokHeldNano,
      reservedAtMs: this.clock.monotonicMs(),
    };
    this.addHeld(hold, 1n);
    this.holds.set(holdId, hold);
    if (byokBound === undefined) return { ok: true, heldNano, freeNano, balanceNano };
    return {
      ok: true,
      heldNano,
      freeNano,
      byokHeldNano,
      byokFreeNano: byokBound.freeNano,
      balanceNano,
    };
  }

  grow(holdId: string, toNano: bigint): bigint {
    const hold = this.holds.get(holdId);
    if (hold === undefined) return 0n;
    this.addHeld(hold, -1n);
    const { freeNano } = this.boundOf(this.book.workspace(hold.workspaceId), hold.keys, hold);
    const reachedNano = toNano < freeNano ? toNano : freeNano;
    if (reachedNano > hold.heldNano) hold.heldNano = reachedNano;
    this.addHeld(hold, 1n);
    return hold.heldNano;
  }

  /**
   * Charges a hold and frees the rest. Where the database refuses the charge, nothing is charged,
   * and the balances are as before.
   */
  post<Rows extends CommitUnit>(request: PostRequest<Rows>): Posting<Rows> {
    const hold = this.release(request.holdId);
    if (hold === undefined) return settledBefore;
    const account = this.book.workspace(hold.workspaceId);
    const balanceNano = balanceOf(account);
    const use = { workspaceId: hold.workspaceId, tags: request.tags ?? noTags, day: hold.day };
    const mostNano = this.mostOf(account, hold, use);
    const chargedNano = request.amountNano < mostNano ? request.amountNano : mostNano;
    const posted: PostedCharge = {
      chargedNano,
      uncollectedNano: request.amountNano - chargedNano,
      heldNano: hold.heldNano,
      balanceAfterNano: balanceNano - chargedNano,
    };
    const nowMs = this.clock.nowMs();
    const parts = splitOverBuckets(account, chargedNano);
    const { holdId, byokNano = 0n } = request;
    this.apply(account, hold, { parts, amountNano: chargedNano, byokNano, nowMs });
    this.budgets?.spend(use, chargedNano);
    const undo = (error: unknown): never => {
      this.apply(account, hold, {
        parts: { monthlyNano: -parts.monthlyNano, topupNano: -parts.topupNano },
        amountNano: -chargedNano,
        byokNano: -byokNano,
        nowMs,
      });
      this.budgets?.spend(use, -chargedNano);
      throw error;
    };
    let charge: Posting<Rows>["charge"];
    try {
      const {
        workspaceId,
        keys: [key],
      } = hold;
      const rows = chargeRows({
        chargeId: holdId,
        workspaceId,
        keyId: key?.keyId ?? "",
        parts,
        posted,
        byokNano,
        nowMs,
      });
      const alongside = request.alongside(posted);
      const { uncollectedNano, heldNano, balanceAfterNano } = posted;
      charge = { chargedNano, uncollectedNano, heldNano, balanceAfterNano, rows: alongside };
      const unit: CommitUnit = {
        inserts: rows.inserts.concat(alongside.inserts),
        adds: rows.adds.concat(alongside.adds),
      };
      const outcome: PostOutcome = {
        ok: true,
        chargedNano,
        uncollectedNano,
        heldNano,
        balanceAfterNano,
      };
      const durable = this.commits
        .commit(unit, { moreMayFollow: this.holds.size > 0 })
        .then(() => outcome, undo);
      return { charge, durable };
    } catch (error) {
      return { charge, durable: Promise.reject(error).catch(undo) };
    }
  }

  /** Frees a hold without a charge. */
  void(holdId: string): "ok" | "already_settled" {
    return this.release(holdId) === undefined ? "already_settled" : "ok";
  }

  async watch(budget: Budget): Promise<void> {
    await this.budgets?.watch(budget, {
      nowMs: this.clock.nowMs(),
      open: this.holds.values(),
    });
  }

  /**
   * Frees holds that no request settled in time, and returns their ids. Each one is a bug, which
   * the caller logs.
   */
  expire(): string[] {
    const oldestMs = this.clock.monotonicMs() - holdLifetimeMs;
    const expired = this.holds
      .entries()
      .filter(([, hold]) => hold.reservedAtMs < oldestMs)
      .map(([id]) => id);
    for (const id of expired) this.release(id);
    return expired;
  }

  async credit(request: CreditRequest): Promise<void> {
    const atMs = this.clock.nowMs();
    await this.commits.commit(creditUnit(request, atMs));
    const account = this.book.workspace(request.workspaceId);
    if (request.bucket === "topup") account.topupNano += request.amountNano;
    else {
      account.monthlyNano += request.amountNano;
      addFresh(account, { month: monthOf(atMs), amountNano: request.amountNano });
    }
  }

  take(wanted: Withdrawal): Taken {
    return this.purse.take(wanted);
  }

  senderScopesOf(workspaceId: string): readonly BudgetScope[] | undefined {
    return this.budgets?.senderScopesOf(workspaceId);
  }

  windowsOf(workspaceId: string, use: AdmittedUse): readonly Sender[] {
    return this.budgets?.windowsOf(workspaceId, use) ?? noSenders;
  }

  get customers(): CustomerPlans | undefined {
    return this.budgets?.customers;
  }

  requestCounts(settled: SettledRequests): RequestCounts {
    return new BookRequestCounts(settled);
  }

  async stop(): Promise<void> {}

  async refresh(): Promise<void> {}

  private release(holdId: string): Hold | undefined {
    const hold = this.holds.get(holdId);
    if (hold === undefined) return undefined;
    this.holds.delete(holdId);
    if (this.holds.size === 0 && this.onceNoHoldIsOpen.length > 0)
      for (const resolve of this.onceNoHoldIsOpen.splice(0)) resolve();
    this.addHeld(hold, -1n);
    return hold;
  }

  /** Returns the amount that is left of a key's limit, or undefined where it has none. */
  private leftOf({ keyId, keyLimit, countsByok = false }: SpendingKey): bigint | undefined {
    if (keyLimit === null) return undefined;
    const key = this.book.key(keyId);
    const { limitNano, windowHours } = keyLimit;
    return (
      limitNano -
      countedWithin(key, { windowHours, countsByok, nowMs: this.clock.nowMs() }) -
      key.heldNano -
      key.allocatedNano
    );
  }

  /** Returns the tightest of the balance, the limits and the budgets that apply to a request. */
  private boundOf(account: WorkspaceAccount, keys: readonly SpendingKey[], use: BudgetUse): Bound {
    const bound: Bound = {
      freeNano: availableOf(account),
      heldNano: account.heldNano,
      reason: "insufficient_balance",
    };
    for (const key of keys) if (key.keyLimit !== null) this.narrow(bound, key);
    if (this.budgets === undefined) return bound;
    for (const { budget, leftNano, heldNano } of this.budgets.leftFor(use)) {
      if (leftNano < bound.freeNano)
        Object.assign(bound, {
          freeNano: leftNano,
          heldNano,
          reason: "budget",
          budget,
        } satisfies Bound);
    }
    return bound;
  }

  /**
   * Returns the most that a request may be charged, whose hold is freed. Holds of other requests are
   * reserved for those. Up to its own hold a charge is covered, although a budget or a plan was made
   * or lowered since; beyond it, a charge may only use the free amount of the balance and the limits.
   */
  private mostOf(account: WorkspaceAccount, { keys, heldNano }: Hold, use: BudgetUse): bigint {
    const { freeNano } = this.boundOf(account, keys, use);
    const availableNano = availableOf(account);
    const coveredNano = heldNano < availableNano ? heldNano : availableNano;
    const mostNano = freeNano > coveredNano ? freeNano : coveredNano;
    return mostNano > 0n ? mostNano : 0n;
  }

  /**
   * Returns the tightest of the limits that count callers' own provider keys, or undefined where
   * there are none.
   */
  private byokBoundOf(keys: readonly SpendingKey[]): Bound | undefined {
    const counting = keys.filter(
      ({ keyLimit, countsByok }) => keyLimit !== null && countsByok === true,
    );
    const bound: Bound = { freeNano: maxNano, heldNano: 0n, reason: "key_limit" };
    for (const key of counting) this.narrow(bound, key);
    return counting.length === 0 ? undefined : bound;
  }

  private narrow(bound: Bound, key: SpendingKey): void {
    const left = this.leftOf(key);
    if (left === undefined || left >= bound.freeNano) return;
    bound.freeNano = left;
    bound.heldNano = this.book.key(key.keyId).heldNano;
    bound.reason = "key_limit";
  }

  /** Adds a hold to the held amounts, or subtracts it where the sign is -1. */
  private addHeld(hold: Hold, sign: 1n | -1n): void {
    const { workspaceId, keys, heldNano, byokNano } = hold;
    this.book.workspace(workspaceId).heldNano += sign * heldNano;
    this.budgets?.hold(hold, sign * heldNano);
    // Either the gateway's credential serves the request or the caller's own. A limit that counts
    // both therefore holds the larger amount.
    for (const { keyId, countsByok } of keys) {
      this.book.key(keyId).heldNano +=
        sign * (countsByok && byokNano > heldNano ? byokNano : heldNano);
    }
  }

  private apply(
    account: WorkspaceAccount,
    hold: Hold,
    change: {
      parts: { monthlyNano: bigint; topupNano: bigint };
      amountNano: bigint;
      byokNano: bigint;
      nowMs: number;
    },
  ): void {
    account.monthlyNano -= change.parts.monthlyNano;
    account.topupNano -= change.parts.topupNano;
    account.usedNano += change.amountNano;
    const day = Math.floor(change.nowMs / dayMs);
    if (day > account.day) {
      account.day = day;
      account.dayNano = 0n;
    }
    // A charge of yesterday that is undone today is not part of today's sum.
    if (day === account.day) account.dayNano += change.amountNano;
    for (const { keyId } of hold.keys) {
      this.book.key(keyId).spend.add(change.nowMs, change.amountNano);
      if (change.byokNano !== 0n) this.book.byokSpend(keyId).add(change.nowMs, change.byokNano);
    }
  }
}
