import type { AdmittedUse, Budget, BudgetScope, CustomerPlans, Sender } from "../budgets/budget.ts";
import type { AccountBook } from "./book/account-book.ts";
import type { Allocations } from "../allocations/book-allocations.ts";
import type { Month } from "./month.ts";
import type { CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { ReserveOutcome, ReserveRequest } from "./hold-rule.ts";
import type { RequestCounts, SettledRequests } from "../allocations/book-request-counts.ts";
import type { Bucket, CreditRequest } from "./transfer.ts";

/** Milliseconds after which `expire` frees a hold. It is longer than any request may run. */
export const holdLifetimeMs = 2 * 60 * 60 * 1000;

/**
 * The ledger of one process, or of several that share their holds. The latter answers with promises
 * where the former has its result at once.
 */
export interface LedgerPort extends Purse {
  /**
   * The accounts in memory. Where processes share a ledger, these are the balances that this
   * process last received.
   */
  readonly book: AccountBook;
  readonly openHoldCount: number;
  /** Returns whether this process has opened such a hold, and it is open. */
  hasHold(holdId: string): boolean;
  /** The amounts that are set aside for runs. */
  readonly allocations: Allocations;
  /** Returns the customer and tags that budgets of a workspace count; undefined where none do. */
  senderScopesOf(workspaceId: string): readonly BudgetScope[] | undefined;
  /** Returns the periods of budgets in a time zone that count a request. */
  windowsOf(workspaceId: string, use: AdmittedUse): readonly Sender[];
  /** The plans of customers; undefined before they are open. */
  readonly customers: CustomerPlans | undefined;
  /** Returns the counts of requests of runs, filled from the database. */
  requestCounts(settled: SettledRequests): RequestCounts;
  /**
   * Resolves once every hold is settled or freed. The commits of settled holds are queued by then.
   */
  untilNoHoldIsOpen(): Promise<void>;
  /**
   * Takes the hold that `amountToHold` (`hold-rule.ts`) allows, or refuses the request. One process
   * returns the outcome itself and no promise: every request takes a hold, and a promise costs time
   * (decision 0038).
   */
  reserve(request: ReserveRequest): ReserveOutcome | Promise<ReserveOutcome>;
  /**
   * Raises a hold to an amount, or as far as the free amount allows. Returns the amount that is
   * held then, which is 0 where there is no such hold. One process returns no promise, since a
   * stream asks between its events.
   */
  grow(holdId: string, toNano: bigint): bigint | Promise<bigint>;
  /** Charges a hold and frees the rest. */
  post<Rows extends CommitUnit>(request: PostRequest<Rows>): Posting<Rows>;
  /** Frees a hold without a charge. */
  void(holdId: string): "ok" | "already_settled";
  /** Reads the spend of a budget, before the budget limits holds. */
  watch(budget: Budget): Promise<void>;
  /** Frees holds that no request settled in time, and returns their ids. */
  expire(): string[];
  /** Adds credits to a bucket. Resolves once they are durable; the next request can spend them. */
  credit(request: CreditRequest): Promise<void>;
  /** Stops the work that goes on between requests. */
  stop(): Promise<void>;
  /**
   * Updates the book for a workspace and its keys. In one process the book is always up to date.
   */
  refresh(workspaceId: string): Promise<void>;
}

/** The balances that credits are taken from without a request, as for a refund. */
export interface Purse {
  /**
   * Takes credits out of a bucket, at most the amount that is requested and only what is not held.
   * One process returns no promise, so that the transfer is queued in the same turn of the event
   * loop.
   */
  take(wanted: Withdrawal): Taken | Promise<Taken>;
}

/**
 * The settlement of a hold: the cost of the request, and the rows that are committed with its
 * charge.
 */
export interface PostRequest<Rows extends CommitUnit = CommitUnit> {
  holdId: string;
  /**
   * The cost of the usage. The part above the hold is charged as far as the balance and the limits
   * allow.
   */
  amountNano: bigint;
  /** The list price of the usage that the caller's own provider key paid for. It is not charged. */
  byokNano?: bigint;
  /**
   * Returns the subjects of budgets that the charge counts towards. Of models and providers, these
   * are the ones that served.
   */
  tags?: (() => readonly string[]) | undefined;
  /**
   * Returns the rows that are committed together with the charge, such as the generation record and
   * its counters. Called again where another amount is charged than was first intended.
   */
  alongside: (posted: PostedCharge) => Rows;
}

/** A charge that was posted. */
export interface PostedCharge {
  /** The id of the hold that was charged; absent where it is the id of the request. */
  chargeId?: string;
  chargedNano: bigint;
  /** The amount that the balance and the limits did not cover, which is booked to the operator. */
  uncollectedNano: bigint;
  heldNano: bigint;
  balanceAfterNano: bigint;
}

/** A charge that is being written to the database. */
export interface Posting<Rows extends CommitUnit = CommitUnit> {
  /**
   * The charge with its rows: at once where the ledger decides alone, otherwise once the gateways
   * that share it have agreed; undefined before, and where the hold was posted or voided before.
   */
  readonly charge: (PostedCharge & { readonly rows: Rows }) | undefined;
  /** Resolves when the charge is durable. Rejects where nothing was charged. */
  readonly durable: Promise<PostOutcome>;
}

/** The posted charge, or a refusal where the hold was posted or voided before. */
export type PostOutcome = ({ ok: true } & PostedCharge) | { ok: false; reason: "already_settled" };

/** A request to take credits out of a bucket. */
export interface Withdrawal {
  /** The id of the transfer. */
  id: string;
  workspaceId: string;
  bucket: Bucket;
  /** The most to take; absent means everything. */
  mostNano?: bigint;
  /** The month whose grants stay in the monthly bucket; absent means that none do. */
  month?: Month;
}

/** Credits that were taken from the balance, and whose transfer is to be committed. */
export interface Taken {
  takenNano: bigint;
  /** Records that the transfer is committed. */
  committed(): void;
  /** Returns the credits to the balance, after the database refused the transfer. */
  undo(): void;
}
