import type { BlockingBudgets } from "../../budgets/blocking-budgets.ts";
import type {
  AdmittedUse,
  BudgetBound,
  BudgetScope,
  CustomerPlans,
  Sender,
} from "../../budgets/budget.ts";
import type { Clock } from "../../../platform/kernel/clock.ts";
import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import type { CommitQueue, CommitUnit } from "../../../platform/storage/commit-queue.ts";
import { isOverdrawn } from "../../../platform/storage/storage-error.ts";
import { balanceOf, type AccountBook } from "../book/account-book.ts";
import { type ChargeParts, chargeRows, creditUnit, type CreditRequest } from "../transfer.ts";
import type { ReserveOutcome, ReserveRequest } from "../hold-rule.ts";
import {
  holdLifetimeMs,
  type LedgerPort,
  type PostedCharge,
  type Posting,
  type PostOutcome,
  type PostRequest,
  type Taken,
  type Withdrawal,
} from "../ledger-port.ts";
import type { RequestCounts, SettledRequests } from "../../allocations/book-request-counts.ts";
import { chargeAlone, postedOf } from "./charge-alone.ts";
import {
  countsByok,
  holdOf,
  hourOf,
  keyIdsOf,
  LocalHolds,
  type SharedHold,
} from "./local-holds.ts";
import {
  announceScript,
  budgetValues,
  forgetScript,
  growScript,
  keyValues,
  postScript,
  tagText,
  withdrawScript,
} from "./ledger-scripts.ts";
import { OpenCharges } from "./open-charges.ts";
import { Reservations } from "./reservations.ts";
import { resolveCharge } from "./resolve-charge.ts";
import type { LedgerAnswer, SharedAccounts } from "./shared-accounts.ts";
import { SharedAllocations } from "../../allocations/shared-allocations.ts";
import { SharedRequestCounts } from "../../allocations/shared-request-counts.ts";
import { UnreportedCharges } from "./unreported-charges.ts";

/** The pause before a message that did not reach the server is sent again, in milliseconds. */
const retryMs = 100;
/** How long a gateway that stops waits for the charges in progress, in milliseconds. */
const stopPatienceMs = 2_000;

/** The dependencies of the shared ledger. */
export interface SharedLedgerOptions {
  accounts: SharedAccounts;
  /** The most recently received balance of each account, for readers that need no exact figure. */
  book: AccountBook;
  commits: CommitQueue;
  clock: Clock;
  /** The budgets that limit holds; absent means none. */
  blocking?: BlockingBudgets;
  /** Updates the book from the database. */
  readBook(workspaceId: string): Promise<void>;
  onError(error: unknown): void;
}

/**
 * The ledger of several processes on one database. The shared server stores what can be spent and
 * what is held; the database stores what was spent. A charge that its hold covers is committed
 * first, and the hold ends when the server receives the report of the charge (`UnreportedCharges`).
 * Any other charge leaves the shared balance before the commit and returns to it where the database
 * refuses the commit. So the server never offers more than the database has, and no balance falls
 * below zero. While the server is unavailable, the ledger takes no holds and charges the existing
 * ones to the database alone; the server reads those charges when it is back.
 */
export class SharedLedger implements LedgerPort {
  readonly book: AccountBook;
  private readonly holds: LocalHolds;
  private readonly charges: OpenCharges;
  private readonly unreported: UnreportedCharges;
  private readonly reservations: Reservations;
  readonly allocations: SharedAllocations;

  constructor(private readonly options: SharedLedgerOptions) {
    this.book = options.book;
    this.charges = new OpenCharges(options);
    this.unreported = new UnreportedCharges({ ...options, charges: this.charges });
    this.holds = new LocalHolds(options);
    const asking = {
      ...options,
      charges: this.charges,
      beforeAsking: () => this.unreported.reportNow(),
      onAnswer: (workspaceId: string, answer: LedgerAnswer) =>
        this.recordAnswer(workspaceId, answer),
    };
    this.reservations = new Reservations({ ...asking, holds: this.holds });
    this.allocations = new SharedAllocations(asking);
  }

  /**
   * Starts renewing the holds and charges in progress, so that no other gateway takes them for
   * those of a dead process.
   */
  start(): void {
    this.holds.start({
      chargesUnderWay: () => this.charges.all(),
      onLapse: () => this.quietly(this.releaseUnused()),
    });
  }

  /** Frees the unused holds in advance; resolves once the server has freed them. */
  releaseUnused(): Promise<void> {
    return this.reservations.releaseUnused();
  }

  /** Renews all holds and charges in progress. After `start` this also happens automatically. */
  renew(): Promise<void> {
    this.quietly(this.releaseUnused());
    return this.holds.renew(this.charges.all());
  }

  /**
   * Stops renewing. Where the other gateways know of all of this gateway's charges, it announces
   * that it leaves, and they free its holds and read the database.
   */
  async stop(): Promise<void> {
    this.quietly(this.releaseUnused());
    this.holds.stop({ leaves: await this.unreported.untilNone(stopPatienceMs) });
  }

  /** The number of charges and holds whose end the server does not know of yet. */
  get unconfirmedCount(): number {
    return this.charges.count;
  }

  get openHoldCount(): number {
    return this.holds.count;
  }

  hasHold(holdId: string): boolean {
    return this.holds.has(holdId);
  }

  untilNoHoldIsOpen(): Promise<void> {
    return this.holds.untilNone();
  }

  reserve(request: ReserveRequest): ReserveOutcome | Promise<ReserveOutcome> {
    const { holdId, workspaceId, ceilingNano, byokNano = 0n } = request;
    const balanceNano = balanceOf(this.book.workspace(workspaceId));
    if (this.holds.has(holdId))
      return { ok: false, reason: "exists", balanceNano, freeNano: 0n, heldNano: 0n };
    if (ceilingNano > 0n || (byokNano > 0n && countsByok(request)))
      return this.reservations.reserve(request);
    const hold = holdOf(request, {
      ...this.options,
      entry: undefined,
      heldNano: 0n,
      era: undefined,
    });
    this.holds.add(holdId, hold);
    return { ok: true, heldNano: 0n, freeNano: 0n, balanceNano };
  }

  async grow(holdId: string, toNano: bigint): Promise<bigint> {
    const hold = this.holds.open(holdId);
    if (hold?.entry === undefined) return 0n;
    const values = [
      hold.id,
      hourOf(this.options.clock),
      String(toNano),
      ...keyValues(hold),
      hold.entry,
      ...budgetValues(this.boundsOf(hold)),
    ];
    try {
      const answer = await this.options.accounts.ask(growScript, hold.workspaceId, values);
      this.recordAnswer(hold.workspaceId, answer);
      // Renewals and the charge use the hold as the server now stores it.
      hold.entry = answer.detail;
      hold.heldNano = BigInt(answer.detail.slice(0, answer.detail.indexOf("|")));
    } catch (error) {
      if (!(error instanceof SharedStateAwayError)) throw error;
      hold.mayHaveGrown = true;
    }
    return hold.heldNano;
  }

  post<Rows extends CommitUnit>(request: PostRequest<Rows>): Posting<Rows> {
    let charge: Posting<Rows>["charge"];
    const durable = this.settle({
      ...request,
      alongside(posted) {
        const rows = request.alongside(posted);
        charge = { ...posted, rows };
        return rows;
      },
    });
    return {
      get charge() {
        return charge;
      },
      durable,
    };
  }

  private settle(request: PostRequest): Promise<PostOutcome> {
    const hold = this.holds.beginSettling(request.holdId);
    if (hold === undefined) return Promise.resolve({ ok: false, reason: "already_settled" });
    if (this.isCovered(request, hold)) return this.chargeHeld(request, hold);
    if (request.amountNano > 0n || (request.byokNano ?? 0n) > 0n) return this.charge(request, hold);
    // Charges nothing, so the server does not have to answer first.
    const parts = { monthlyNano: 0n, topupNano: 0n };
    const posted = postedOf(request, {
      hold,
      parts,
      balanceNano: balanceOf(this.book.workspace(hold.workspaceId)),
    });
    this.free(hold);
    return this.commit(request, { hold, posted, parts });
  }

  void(holdId: string): "ok" | "already_settled" {
    const hold = this.holds.beginSettling(holdId);
    if (hold === undefined) return "already_settled";
    this.free(hold);
    this.holds.remove(holdId);
    return "ok";
  }

  async watch(): Promise<void> {}

  expire(): string[] {
    const expired = this.holds.olderThan(this.options.clock.monotonicMs() - holdLifetimeMs);
    const freed: string[] = [];
    for (const id of expired) if (this.void(id) === "ok") freed.push(id);
    return freed;
  }

  async credit(request: CreditRequest): Promise<void> {
    const { id, workspaceId } = request;
    // Needs no retry while the server is unavailable: it reads the database when it is back.
    await this.options.accounts.run(announceScript, workspaceId, [id]).catch(this.unlessAway);
    this.charges.add(id, { workspaceId, keyIds: [] });
    try {
      await this.options.commits.commit(creditUnit(request, this.options.clock.nowMs()));
      await this.forget(workspaceId);
    } finally {
      this.charges.confirm(id);
    }
    await this.refresh(workspaceId);
  }

  async take({ id, workspaceId, bucket, mostNano, month }: Withdrawal): Promise<Taken> {
    const values = [id, bucket, String(mostNano ?? -1n), month ?? ""];
    const { detail, ...answer } = await this.options.accounts.ask(
      withdrawScript,
      workspaceId,
      values,
    );
    this.recordAnswer(workspaceId, answer);
    if (detail !== "0") this.charges.add(id, { workspaceId, keyIds: [] });
    return {
      takenNano: BigInt(detail),
      committed: () => this.charges.confirm(id),
      undo: () => this.charges.revert(id),
    };
  }

  senderScopesOf(workspaceId: string): readonly BudgetScope[] | undefined {
    return this.options.blocking?.senderScopesOf(workspaceId);
  }

  windowsOf(workspaceId: string, use: AdmittedUse): readonly Sender[] {
    return this.options.blocking?.windowsOf(workspaceId, use) ?? [];
  }

  get customers(): CustomerPlans | undefined {
    return this.options.blocking?.customers;
  }

  requestCounts(settled: SettledRequests): RequestCounts {
    return new SharedRequestCounts(this.options.accounts, settled);
  }

  refresh(workspaceId: string): Promise<void> {
    return this.options.readBook(workspaceId);
  }

  /**
   * Returns whether a charge can be committed before the server learns of it. The hold keeps its
   * credits from other requests until then, and readings of the database find the charge by its
   * transfers.
   */
  private isCovered(
    { amountNano, byokNano = 0n }: PostRequest,
    { entry, heldNano, workspaceId }: SharedHold,
  ): boolean {
    const isHeld = entry !== undefined && amountNano > 0n && amountNano <= heldNano;
    return isHeld && byokNano === 0n && this.holds.areSafeIn(workspaceId);
  }

  /** Commits a charge that its hold covers, and reports it to the server afterwards. */
  private async chargeHeld(request: PostRequest, hold: SharedHold): Promise<PostOutcome> {
    const { amountNano } = request;
    const tags = request.tags?.() ?? [];
    const charge = this.unreported.begin({
      holdId: hold.id,
      hold,
      amountNano,
      hour: hourOf(this.options.clock),
      tags,
    });
    const posted = postedOf(request, charge);
    try {
      const outcome = await this.commit(request, { hold, posted, parts: charge.parts });
      this.unreported.reportSoon(charge);
      return outcome;
    } catch (error) {
      this.unreported.end(charge);
      if (isOverdrawn(error)) return this.chargeAlone(request, hold);
      this.free(hold);
      throw error;
    }
  }

  private async charge(request: PostRequest, hold: SharedHold): Promise<PostOutcome> {
    const { holdId, amountNano, byokNano = 0n } = request;
    const tags = request.tags?.() ?? [];
    const values = [
      hold.id,
      hourOf(this.options.clock),
      String(amountNano),
      String(byokNano),
      ...keyValues(hold),
      hold.day,
      tagText(tags),
      ...budgetValues(this.boundsOf({ ...hold, tags })),
    ];
    let answer: LedgerAnswer;
    try {
      answer = await this.options.accounts.ask(postScript, hold.workspaceId, values);
    } catch (error) {
      if (error instanceof SharedStateAwayError) return this.chargeAlone(request, hold);
      this.holds.remove(holdId);
      throw error;
    }
    this.recordAnswer(hold.workspaceId, answer);
    this.charges.add(hold.id, { workspaceId: hold.workspaceId, keyIds: keyIdsOf(hold) });
    const [monthly = "0", topup = "0"] = answer.detail.split("|");
    const parts = { monthlyNano: BigInt(monthly), topupNano: BigInt(topup) };
    const posted = postedOf(request, {
      hold,
      parts,
      balanceNano: answer.monthlyNano + answer.topupNano,
    });
    try {
      const outcome = await this.commit(request, { hold, posted, parts });
      this.charges.confirm(hold.id);
      return outcome;
    } catch (error) {
      if (isOverdrawn(error)) return this.chargeAlone(request, hold);
      this.charges.revert(hold.id);
      throw error;
    }
  }

  /**
   * Charges the database without the server, which is unavailable or has more than the database.
   */
  private async chargeAlone(request: PostRequest, hold: SharedHold): Promise<PostOutcome> {
    const { holdId } = request;
    const { id, workspaceId, entry } = hold;
    const subject = { workspaceId, keyIds: keyIdsOf(hold), entry };
    this.charges.add(id, subject);
    try {
      return await chargeAlone(
        { amountNano: request.amountNano, heldNano: hold.heldNano },
        {
          durable: () => this.options.accounts.durable(workspaceId),
          commit: ({ parts, balanceNano }) =>
            this.commit(request, {
              hold,
              parts,
              posted: postedOf(request, { hold, parts, balanceNano }),
            }),
        },
      );
    } finally {
      this.holds.remove(holdId);
      this.charges.settled(id, subject);
    }
  }

  private commit(
    { holdId, byokNano = 0n, alongside }: PostRequest,
    { hold, posted, parts }: { hold: SharedHold; posted: PostedCharge; parts: ChargeParts },
  ): Promise<PostOutcome> {
    try {
      const {
        workspaceId,
        key: { keyId },
      } = hold;
      const rows = chargeRows({
        chargeId: hold.id,
        generationId: holdId,
        workspaceId,
        keyId,
        parts,
        posted,
        byokNano,
        nowMs: this.options.clock.nowMs(),
      });
      const charged = hold.id === holdId ? posted : { ...posted, chargeId: hold.id };
      const beside = alongside(charged);
      const unit = {
        inserts: [...rows.inserts, ...beside.inserts],
        adds: [...rows.adds, ...beside.adds],
      };
      return this.options.commits
        .commit(unit, { moreMayFollow: this.holds.count > 1 })
        .then(() => ({ ok: true, ...charged }));
    } catch (error) {
      return Promise.reject(error);
    } finally {
      this.holds.remove(holdId);
    }
  }

  private free({ id, workspaceId, entry }: SharedHold): void {
    if (entry !== undefined) this.charges.void(id, { workspaceId, keyIds: [] });
  }

  /**
   * Makes the server forget a workspace's balance, since the database has credits that the server
   * does not know of. The next request reads them. Retries until the server answers.
   */
  private async forget(workspaceId: string): Promise<void> {
    try {
      await this.options.accounts.run(forgetScript, workspaceId, []);
    } catch (error) {
      if (!(error instanceof SharedStateAwayError)) throw error;
      setTimeout(() => this.quietly(this.forget(workspaceId)), retryMs).unref();
    }
  }

  /** Records the balances that the server reported, and resolves the charges of dead processes. */
  private recordAnswer(
    workspaceId: string,
    { monthlyNano, topupNano, stale }: Omit<LedgerAnswer, "outcome" | "detail">,
  ): void {
    Object.assign(this.book.workspace(workspaceId), { monthlyNano, topupNano });
    for (const charge of stale) {
      if (this.charges.has(charge.id)) continue;
      const forget = (): Promise<void> => this.forget(workspaceId);
      this.quietly(
        resolveCharge(charge, { ...this.options, workspaceId, charges: this.charges, forget }),
      );
    }
  }

  private boundsOf({
    workspaceId,
    tags,
    day,
  }: Pick<SharedHold, "workspaceId" | "tags" | "day">): BudgetBound[] {
    return this.options.blocking?.boundsOf(workspaceId, tags, day) ?? [];
  }

  private quietly(work: Promise<unknown>): void {
    work.catch(this.unlessAway);
  }

  private readonly unlessAway = (error: unknown): void => {
    if (!(error instanceof SharedStateAwayError)) this.options.onError(error);
  };
}
