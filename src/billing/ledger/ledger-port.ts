import type { Budget } from "../budgets/budget.ts";
import type { AccountBook } from "./account-book.ts";
import type { Month } from "./month.ts";
import type { CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { ReserveOutcome, ReserveRequest } from "./hold-rule.ts";
import type { PostOutcome, PostRequest } from "./ledger.ts";
import type { Bucket, TransferKind } from "./transfer.ts";

/** Credits that are added to a bucket. */
export interface CreditRequest {
  id: string;
  workspaceId: string;
  bucket: Bucket;
  amountNano: bigint;
  kind: TransferKind;
  reference: string | null;
  /** What is to be committed together with the transfer. */
  alongside?: (atMs: number) => CommitUnit["inserts"];
}

/**
 * The ledger of one process, or of several that share their holds: then its answers have to be
 * waited for.
 */
export interface LedgerPort extends Purse {
  /** What it knows of accounts; where processes share a ledger, what it heard of them last. */
  readonly book: AccountBook;
  readonly openHoldCount: number;
  /**
   * Resolves once every hold is settled or freed; the commits of those that were settled are queued
   * by then.
   */
  untilNoHoldIsOpen(): Promise<void>;
  /**
   * Takes the hold that `borneOf` finds (`hold-rule.ts`), or as much of it as is free; refused
   * where that is less than the least. At once in one process: every request comes by here, and
   * what need not wait makes no promise (decision 0038).
   */
  reserve(request: ReserveRequest): ReserveOutcome | Promise<ReserveOutcome>;
  /**
   * Raises a hold to an amount, or as far as there is something free; gives what it holds then, 0
   * where there is none. At once in one process, since a stream asks between its events.
   */
  grow(holdId: string, toNano: bigint): bigint | Promise<bigint>;
  /** Charges a hold and frees the rest; settles when the charge is durable. */
  post(request: PostRequest): Promise<PostOutcome>;
  /** Frees a hold without a charge. */
  void(holdId: string): "ok" | "already_settled";
  /** Makes what was spent of a budget known, before it bounds holds. */
  watch(budget: Budget): Promise<void>;
  /** Frees holds that no request settled in time. */
  expire(): string[];
  /** Adds credits to a bucket; in force for the very next request once it is durable. */
  credit(request: CreditRequest): Promise<void>;
  /** Sees to nothing any more that goes on beside requests. */
  stop(): Promise<void>;
  /** Brings the book up to date for a workspace and its keys; in one process it always is. */
  refresh(workspaceId: string): Promise<void>;
}

/** What credits are taken out of without a request. */
export interface Purse {
  /**
   * Takes at most this much out of a bucket, and never what a hold counts on. At once in one
   * process, so that the transfer is queued in the same turn.
   */
  take(wanted: Withdrawal): Taken | Promise<Taken>;
}

/** Credits that are wanted back. */
export interface Withdrawal {
  /** Id of the transfer. */
  id: string;
  workspaceId: string;
  bucket: Bucket;
  /** Absent means everything. */
  mostNano?: bigint;
  /** Of the monthly bucket, what this month granted stays. */
  month?: Month;
}

/** Credits that were taken and are to be committed. */
export interface Taken {
  takenNano: bigint;
  /** The transfer stands. */
  committed(): void;
  /** The database refused it: they are back. */
  undo(): void;
}
