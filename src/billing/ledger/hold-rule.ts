import type { Budget } from "../budgets/budget.ts";
import type { SpendingKey } from "./ledger.ts";

/** What is held of a request whose worst case is more than an eighth of what is free. */
export interface TightHold {
  /** What the hold begins with. */
  beginNano: bigint;
  /** A hold of less than this is refused. */
  leastNano: bigint;
  /**
   * An eighth of what is free is held where that is more than the beginning: the hold does not grow
   * later.
   */
  takesShare: boolean;
}

/** A request that rate windows of several processes count while its hold is asked for. */
export interface Admission {
  /** Names it; the windows note under it that they had room (`admittedKey`). */
  ticket: string;
  /** Resolves once it is counted; rejects with the refusal of a window that is full. */
  counted: Promise<void>;
}

/** A hold as it is asked for. */
export interface ReserveRequest extends SpendingKey {
  /** Id of the hold; the generation id. */
  holdId: string;
  workspaceId: string;
  /** The key that made this one, where one did: the spend counts against its limit too. */
  parent?: SpendingKey | undefined;
  /** The worst case that the request can reach. */
  ceilingNano: bigint;
  /**
   * What is held where that is more than an eighth of what is free; absent means as much of it as
   * is free.
   */
  tight?: (() => TightHold) | undefined;
  /**
   * The worst case at list price where the caller's own provider key pays; absent where none may
   * serve.
   */
  byokNano?: bigint;
  byokTight?: (() => TightHold) | undefined;
  /** Subjects of budgets that it may count for (`budgetTags`); absent means none. */
  tags?: (() => readonly string[]) | undefined;
  /** Nothing is held before the windows admitted the request; absent means that they have. */
  admission?: Admission | undefined;
}

/** What a hold was taken of. */
export interface Reserved {
  ok: true;
  heldNano: bigint;
  /** What the balance and the limits would have borne in all. */
  freeNano: bigint;
  /**
   * The same of the limits that count the caller's own provider keys; absent where none does, or
   * none of those may serve.
   */
  byokHeldNano?: bigint;
  byokFreeNano?: bigint;
  balanceNano: bigint;
}

/** Why nothing was held; `away`: what other processes hold cannot be seen at the moment. */
export interface NotReserved {
  ok: false;
  reason: "insufficient_balance" | "key_limit" | "budget" | "exists" | "away";
  /** The budget, where one is the reason. */
  budget?: Budget | undefined;
  balanceNano: bigint;
  /**
   * What is left of the balance, the limit or the budget that stands in the way, and what other
   * requests hold of it.
   */
  freeNano: bigint;
  heldNano: bigint;
}

/** A hold, or why there is none. */
export type ReserveOutcome = Reserved | NotReserved;

/** A worst case of at most this part of what is free is held whole. */
const shareOfFree = 8n;

const largerOf = (one: bigint, other: bigint): bigint => (one > other ? one : other);
const smallerOf = (one: bigint, other: bigint): bigint => (one < other ? one : other);

/**
 * What is held for a request; undefined where too little is free for it. `ledger-scripts.ts` has
 * the same rule for several gateways.
 * @example borneOf({ freeNano: 800n, ceilingNano: 100n, tight }) // 100n: an eighth of what is free
 */
export function borneOf({
  freeNano,
  ceilingNano,
  tight,
}: {
  freeNano: bigint;
  ceilingNano: bigint;
  tight: (() => TightHold) | undefined;
}): bigint | undefined {
  if (ceilingNano * shareOfFree <= freeNano) return ceilingNano;
  if (freeNano <= 0n) return undefined;
  if (tight === undefined) return smallerOf(ceilingNano, freeNano);
  const { beginNano, leastNano, takesShare } = tight();
  if (freeNano < leastNano) return undefined;
  const wanted = takesShare ? largerOf(beginNano, freeNano / shareOfFree) : beginNano;
  return smallerOf(smallerOf(ceilingNano, wanted), freeNano);
}
