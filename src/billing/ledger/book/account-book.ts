import type { Month } from "../month.ts";
import { RollingSpend } from "../rolling-spend.ts";

/** The balances of a workspace in nano-USD, with the amount held for requests in progress. */
export interface WorkspaceAccount {
  monthlyNano: bigint;
  topupNano: bigint;
  heldNano: bigint;
  /** The sum of all charges so far. */
  usedNano: bigint;
  /** The UTC day of `dayNano`, in days since the Unix epoch. */
  day: number;
  dayNano: bigint;
  /** The month of `freshNano`. */
  freshMonth: Month | undefined;
  /** The sum of that month's grants into the monthly bucket. */
  freshNano: bigint;
}

/** The spend of a key, with the amount held for its requests in progress. */
export interface KeyAccount {
  spend: RollingSpend;
  /**
   * The list price of requests through callers' own provider keys; absent where there were none.
   */
  byok?: RollingSpend;
  heldNano: bigint;
  /** The amount that is set aside for open runs. */
  allocatedNano: bigint;
}

/** The balances that admission checks, in memory. `LedgerStore` fills them from the database. */
export class AccountBook {
  private readonly workspaces = new Map<string, WorkspaceAccount>();
  private readonly keys = new Map<string, KeyAccount>();

  workspace(id: string): WorkspaceAccount {
    let account = this.workspaces.get(id);
    if (account === undefined) {
      account = {
        monthlyNano: 0n,
        topupNano: 0n,
        heldNano: 0n,
        usedNano: 0n,
        day: 0,
        dayNano: 0n,
        freshMonth: undefined,
        freshNano: 0n,
      };
      this.workspaces.set(id, account);
    }
    return account;
  }

  workspaceIds(): string[] {
    return [...this.workspaces.keys()];
  }

  key(id: string): KeyAccount {
    let account = this.keys.get(id);
    if (account === undefined) {
      account = { spend: new RollingSpend(), heldNano: 0n, allocatedNano: 0n };
      this.keys.set(id, account);
    }
    return account;
  }

  /** Takes over the accounts of another book, in place of those with the same ids. */
  adopt(other: AccountBook): void {
    for (const [id, account] of other.workspaces) this.workspaces.set(id, account);
    for (const [id, account] of other.keys) this.keys.set(id, account);
  }

  /** Returns the list-price spend of a key through callers' own provider keys. */
  byokSpend(id: string): RollingSpend {
    return (this.key(id).byok ??= new RollingSpend());
  }
}

/** Returns the nano-USD that count against a key's limit within a window, without holds. */
export const countedWithin = (
  { spend, byok }: Pick<KeyAccount, "spend" | "byok">,
  { windowHours, countsByok, nowMs }: { windowHours: number; countsByok: boolean; nowMs: number },
): bigint =>
  spend.spentWithin(windowHours, nowMs) +
  (countsByok && byok !== undefined ? byok.spentWithin(windowHours, nowMs) : 0n);

/** Adds a grant into the monthly bucket to the sum of the month with which it expires. */
export function addFresh(
  account: WorkspaceAccount,
  { month, amountNano }: { month: Month; amountNano: bigint },
): void {
  // A grant that was made just before the end of its month and committed after it has expired.
  if (account.freshMonth !== undefined && month < account.freshMonth) return;
  if (account.freshMonth !== month) account.freshNano = 0n;
  account.freshMonth = month;
  account.freshNano += amountNano;
}

/**
 * Returns the rest of the monthly credits of past months. The oldest credits are spent first, so
 * while any of them are left, all grants of this month are left as well.
 */
export function lapsedOf(account: WorkspaceAccount, month: Month): bigint {
  const lapsed = account.monthlyNano - (account.freshMonth === month ? account.freshNano : 0n);
  return lapsed > 0n ? lapsed : 0n;
}

/** Returns the balance of a workspace, including the amount that is held. */
export const balanceOf = (account: WorkspaceAccount): bigint =>
  account.monthlyNano + account.topupNano;

/** Returns the part of the balance that is not held. */
export const availableOf = (account: WorkspaceAccount): bigint =>
  balanceOf(account) - account.heldNano;

/** A hold or a charge, in the form that budgets count. */
export interface BudgetUse {
  workspaceId: string;
  tags(): readonly string[];
  /**
   * The day on which the request was admitted, in days since the Unix epoch. Its cost counts
   * towards the budget period of that day.
   */
  day: number;
}
