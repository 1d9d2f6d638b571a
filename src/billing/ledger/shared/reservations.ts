import type { BlockingBudgets } from "../../budgets/blocking-budgets.ts";
import type { BudgetBound } from "../../budgets/budget.ts";
import type { Clock } from "../../../platform/kernel/clock.ts";
import {
  SharedStateAwayError,
  SharedStateMismatchError,
} from "../../../platform/shared-state/shared-state-error.ts";
import { admittedKey } from "../../../platform/shared-state/shared-state.ts";
import { balanceOf, type AccountBook } from "../book/account-book.ts";
import type { ReserveOutcome, ReserveRequest } from "../hold-rule.ts";
import { AdvanceHolds, type WantedHolds } from "./advance-holds.ts";
import { budgetValues, keyValues, reserveScript, tagText, tightValues } from "./ledger-scripts.ts";
import { countsByok, holdOf, type HoldUse, hourOf, type LocalHolds, useOf } from "./local-holds.ts";
import type { OpenCharges } from "./open-charges.ts";
import type { LedgerAnswer, SharedAccounts } from "./shared-accounts.ts";

/** Options of reservations. */
interface ReservationsOptions {
  accounts: SharedAccounts;
  book: AccountBook;
  clock: Clock;
  blocking?: BlockingBudgets;
  holds: LocalHolds;
  charges: OpenCharges;
  /** Called before a request to the server, so that the server knows the earlier charges. */
  beforeAsking(): void;
  /** Called with each answer of the server about a workspace. */
  onAnswer(workspaceId: string, answer: LedgerAnswer): void;
  onError(error: unknown): void;
}

/** The holds to request in advance, and the name of their pool. */
interface AdvanceWish extends WantedHolds {
  name: string;
}

const noWish: AdvanceWish = { name: "", ids: [], eachNano: 0n };

/** A request for a hold with what it counts towards, which is worked out once. */
interface Reservation {
  request: ReserveRequest;
  use: HoldUse;
  bounds: readonly BudgetBound[];
  /** The keys in the form that scripts take. */
  keys: readonly (string | number)[];
}

/** The refusals for which unused holds may be the reason. */
const releasable: ReadonlySet<string> = new Set(["insufficient_balance", "key_limit", "budget"]);

/**
 * Takes holds for requests: those that this gateway took in advance, or new ones from the shared
 * server.
 */
export class Reservations {
  private readonly holds: LocalHolds;
  private readonly advance: AdvanceHolds;

  constructor(private readonly options: ReservationsOptions) {
    this.holds = options.holds;
    this.advance = new AdvanceHolds(options);
  }

  /**
   * Frees the holds that were taken in advance and not used. Resolves once the server has freed
   * them.
   */
  releaseUnused(): Promise<void> {
    return this.advance.releaseAll();
  }

  /**
   * Takes a hold for a request: an unused one that was taken in advance, or else a new one from the
   * server.
   */
  reserve(request: ReserveRequest): ReserveOutcome | Promise<ReserveOutcome> {
    const { holdId, workspaceId, ceilingNano, byokNano = 0n, admission } = request;
    const reservation = this.reservationOf(request);
    if (ceilingNano <= 0n || (byokNano > 0n && countsByok(request)))
      return this.reserveWith(reservation, noWish);
    const name = nameOf(reservation);
    if (!this.holds.areSafeIn(workspaceId) || !this.advance.has(name, ceilingNano))
      return this.reserveWith(reservation, { name, ...this.advance.wanted(name, request) });
    if (admission !== undefined)
      return admission.counted.then(() => this.reserve({ ...request, admission: undefined }));
    const hold = this.advance.take(name);
    this.holds.add(
      holdId,
      holdOf(request, { clock: this.options.clock, use: reservation.use, ...hold }),
    );
    if (this.advance.runsOut(name)) this.fillAdvance(reservation, name).catch(this.options.onError);
    const balanceNano = balanceOf(this.options.book.workspace(workspaceId));
    return { ok: true, heldNano: ceilingNano, freeNano: ceilingNano, balanceNano };
  }

  /** Requests holds for later requests. No request waits for them. */
  private async fillAdvance(reservation: Reservation, name: string): Promise<void> {
    const { request } = reservation;
    const { ids, eachNano } = this.advance.wanted(name, request);
    const [id, ...others] = ids;
    if (id === undefined) return;
    const own = { holdId: id, ceilingNano: eachNano, byokNano: 0n, tight: undefined };
    const wanted = { ...reservation, request: { ...request, ...own } };
    const outcome = await this.reserveShared(wanted, { name, ids: others, eachNano });
    const hold = this.holds.open(id);
    if (!outcome.ok || hold === undefined) return;
    this.holds.remove(id);
    const { workspaceId, entry, heldNano, era } = hold;
    if (heldNano < eachNano || entry === undefined || era === undefined) {
      this.options.charges.void(id, { workspaceId, keyIds: [] });
      return;
    }
    this.advance.put(name, { workspaceId, holds: [{ id, entry, heldNano, era }] });
  }

  private reservationOf(request: ReserveRequest): Reservation {
    const { workspaceId, ceilingNano, parent } = request;
    const use = useOf(request, this.options.clock);
    const { blocking } = this.options;
    const bounds =
      ceilingNano > 0n ? (blocking?.boundsOf(workspaceId, use.tags, use.day) ?? []) : [];
    return { request, use, bounds, keys: keyValues({ key: request, parent }) };
  }

  private async reserveWith(reservation: Reservation, wish: AdvanceWish): Promise<ReserveOutcome> {
    const { request } = reservation;
    const outcome = await this.reserveShared(reservation, wish);
    if (outcome.ok || !releasable.has(outcome.reason)) return outcome;
    const hasReleased = await this.advance.release(request.workspaceId).catch(() => false);
    if (!hasReleased) return outcome;
    return this.reserveShared(
      { ...reservation, request: { ...request, admission: undefined } },
      noWish,
    );
  }

  private async reserveShared(
    reservation: Reservation,
    wish: AdvanceWish,
  ): Promise<ReserveOutcome> {
    const { request, use, bounds, keys } = reservation;
    const { holdId, workspaceId, ceilingNano, byokNano = 0n, tight, byokTight } = request;
    const part = this.options.accounts.partOf(workspaceId);
    const values = [
      holdId,
      hourOf(this.options.clock),
      ...tightValues(ceilingNano, tight),
      ...tightValues(byokNano, byokTight),
      ...keys,
      use.day,
      tagText(use.tags),
      request.admission === undefined ? "" : admittedKey(part, request.admission.ticket),
      wish.ids.join(","),
      String(wish.eachNano),
      ...budgetValues(bounds),
    ];
    const era = this.options.accounts.eraOf(workspaceId);
    this.options.beforeAsking();
    let answer: LedgerAnswer;
    try {
      const sure = part.untilSure?.();
      if (sure !== undefined) await sure;
      answer = await this.options.accounts.ask(reserveScript, workspaceId, values);
    } catch (error) {
      this.failed(wish);
      if (!(error instanceof SharedStateAwayError)) throw error;
      // The server may still read the request when it is back.
      for (const id of [holdId, ...wish.ids])
        this.options.charges.settled(id, { workspaceId, keyIds: [] });
      const reason = error instanceof SharedStateMismatchError ? "mismatch" : "away";
      return { ok: false, reason, balanceNano: 0n, freeNano: 0n, heldNano: 0n };
    }
    this.options.onAnswer(workspaceId, answer);
    const balanceNano = answer.monthlyNano + answer.topupNano;
    const [outcome, budgetIndex] = answer.outcome.split(" ");
    if (outcome === "not_admitted") return this.reserveOnceCounted(reservation, wish);
    if (
      outcome === "insufficient_balance" ||
      outcome === "key_limit" ||
      outcome === "budget" ||
      outcome === "exists"
    ) {
      this.failed(wish);
      const [freeNano = 0n, heldNano = 0n] = answer.detail.split("|").map(BigInt);
      const budget = outcome === "budget" ? bounds[Number(budgetIndex)]?.budget : undefined;
      return { ok: false, reason: outcome, budget, balanceNano, freeNano, heldNano };
    }
    const [entry = "", free = "", taken = "0", otherEntry = ""] = answer.detail.split("/");
    const [held = "0", , , , , byokHeld = "0"] = entry.split("|");
    const [freeText = "0", byokFreeText = ""] = free.split("|"),
      heldNano = BigInt(held);
    this.holds.add(holdId, holdOf(request, { ...this.options, use, entry, heldNano, era }));
    if (wish.ids.length > 0) this.putAdvance(wish, { workspaceId, era, otherEntry, taken });
    const reserved = { ok: true, heldNano, freeNano: BigInt(freeText), balanceNano } as const;
    return byokFreeText === ""
      ? reserved
      : { ...reserved, byokHeldNano: BigInt(byokHeld), byokFreeNano: BigInt(byokFreeText) };
  }

  private putAdvance(
    { name, ids, eachNano: heldNano }: AdvanceWish,
    {
      workspaceId,
      era = "",
      otherEntry: entry,
      taken,
    }: { workspaceId: string; era: string | undefined; otherEntry: string; taken: string },
  ): void {
    const holds = ids.slice(0, Number(taken)).map((id) => ({ id, entry, heldNano, era }));
    this.advance.put(name, { workspaceId, holds });
  }

  /**
   * Takes a hold for a request that the server's windows have not admitted: they refuse it, or this
   * gateway counted it by itself while the server was away.
   */
  private async reserveOnceCounted(
    reservation: Reservation,
    wish: AdvanceWish,
  ): Promise<ReserveOutcome> {
    const { admission, ...request } = reservation.request;
    try {
      await admission?.counted;
    } catch (error) {
      this.failed(wish);
      throw error;
    }
    return this.reserveShared({ ...reservation, request }, wish);
  }

  /** Records that the server granted no holds, if any were requested. */
  private failed({ name, ids }: AdvanceWish): void {
    if (ids.length > 0) this.advance.failed(name);
  }
}

/** Returns the name of the pool of all requests that count towards the same sums and limits. */
const nameOf = ({ keys, use, bounds }: Reservation): string =>
  [...keys, use.day, tagText(use.tags), ...budgetValues(bounds)].join(" ");
