import type { Budget } from "../budgets/budget.ts";

/** A spending limit of a key, measured over a rolling window. */
interface KeyLimit {
  limitNano: bigint;
  windowHours: number;
}

/** A key that a request is charged to, with its limit. */
export interface SpendingKey {
  keyId: string;
  keyLimit: KeyLimit | null;
  /**
   * Whether the list price of requests through callers' own provider keys counts against the limit.
   */
  countsByok?: boolean;
}

/** The hold for a request whose worst case is more than an eighth of the free amount. */
export interface TightHold {
  /** The amount that the hold begins with. */
  beginNano: bigint;
  /** The smallest hold. The request is refused where less is free. */
  leastNano: bigint;
  /**
   * Whether an eighth of the free amount is held where that is more than the beginning, since the
   * hold does not grow later.
   */
  takesShare: boolean;
}

/** A request that shared rate windows count while its hold is requested. */
export interface Admission {
  /** The id under which the windows record that they admitted the request (`admittedKey`). */
  ticket: string;
  /** Resolves once the request is counted. Rejects with the refusal of a window that is full. */
  counted: Promise<void>;
}

/** A request for a hold. */
export interface ReserveRequest extends SpendingKey {
  /** The id of the hold, which is the generation id. */
  holdId: string;
  workspaceId: string;
  /** The parent key, where there is one. The spend counts against its limit too. */
  parent?: SpendingKey | undefined;
  /** The worst-case cost of the request. */
  ceilingNano: bigint;
  /**
   * Returns the hold to take where the worst case is more than an eighth of the free amount. Absent
   * means the worst case, or as much of it as is free.
   */
  tight?: (() => TightHold) | undefined;
  /**
   * The worst case at list price where the caller's own provider key pays; absent where no such key
   * may serve.
   */
  byokNano?: bigint;
  byokTight?: (() => TightHold) | undefined;
  /**
   * Returns the subjects of budgets that the request may count towards (`budgetTags`); absent means
   * none.
   */
  tags?: (() => readonly string[]) | undefined;
  /**
   * The admission by rate windows, which has to come before the hold; absent means that the windows
   * have admitted the request.
   */
  admission?: Admission | undefined;
}

/** A hold that was taken, and the amounts that limited it. */
export interface Reserved {
  ok: true;
  heldNano: bigint;
  /** The largest hold that the balance and the limits allowed. */
  freeNano: bigint;
  /**
   * The hold and the largest hold on limits that count the caller's own provider keys; absent where
   * there is no such limit, or no such key may serve.
   */
  byokHeldNano?: bigint;
  byokFreeNano?: bigint;
  balanceNano: bigint;
}

/**
 * The reason why nothing was held. `away` means that the holds of other processes cannot be read
 * now.
 */
export interface NotReserved {
  ok: false;
  reason: "insufficient_balance" | "key_limit" | "budget" | "exists" | "away" | "mismatch";
  /** The budget, where one is the reason. */
  budget?: Budget | undefined;
  balanceNano: bigint;
  /**
   * The amount that is free of the balance, limit or budget that caused the refusal, and the amount
   * that other requests hold of it.
   */
  freeNano: bigint;
  heldNano: bigint;
}

/** A hold, or the reason for its refusal. */
export type ReserveOutcome = Reserved | NotReserved;

/** A worst case of up to an eighth of the free amount is held in full. */
const shareOfFree = 8n;

const largerOf = (one: bigint, other: bigint): bigint => (one > other ? one : other);
const smallerOf = (one: bigint, other: bigint): bigint => (one < other ? one : other);

/**
 * Returns the amount to hold for a request, or undefined where too little is free. The function
 * `amountToHold` in `ledger-script.ts` is the same rule for several gateways.
 * @example amountToHold({ freeNano: 800n, ceilingNano: 100n, tight }) // 100n, an eighth of it
 */
export function amountToHold({
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
