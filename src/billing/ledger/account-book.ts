import type { Month } from "./month.ts";
import { RollingSpend } from "./rolling-spend.ts";

/** What a workspace can spend, in nano-USD, with what is held for requests in flight. */
export interface WorkspaceAccount {
  monthlyNano: bigint;
  topupNano: bigint;
  heldNano: bigint;
  /** Everything ever charged. */
  usedNano: bigint;
  /** UTC day number (days since the epoch) that `dayNano` belongs to. */
  day: number;
  dayNano: bigint;
  /** The month that `freshNano` belongs to. */
  freshMonth: Month | undefined;
  /** Everything that was granted into the monthly bucket in that month. */
  freshNano: bigint;
}

/** What a key has spent and what is held for its requests in flight. */
export interface KeyAccount {
  spend: RollingSpend;
  /**
   * The list price of what its requests asked through callers' own provider keys; absent where
   * nothing ever was.
   */
  byok?: RollingSpend;
  heldNano: bigint;
}

/**
 * The balances that admission looks at, in memory; the transfers on disk are what they are rebuilt
 * from.
 */
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
      account = { spend: new RollingSpend(), heldNano: 0n };
      this.keys.set(id, account);
    }
    return account;
  }

  /** Takes over what another book says of its workspaces and keys. */
  adopt(other: AccountBook): void {
    for (const [id, account] of other.workspaces) this.workspaces.set(id, account);
    for (const [id, account] of other.keys) this.keys.set(id, account);
  }

  /** What a key asked through callers' own provider keys. */
  byokSpend(id: string): RollingSpend {
    return (this.key(id).byok ??= new RollingSpend());
  }
}

/** Nano-USD that count against a key's limit within a window, holds aside. */
export const countedWithin = (
  { spend, byok }: Pick<KeyAccount, "spend" | "byok">,
  { windowHours, countsByok, nowMs }: { windowHours: number; countsByok: boolean; nowMs: number },
): bigint =>
  spend.spentWithin(windowHours, nowMs) +
  (countsByok && byok !== undefined ? byok.spentWithin(windowHours, nowMs) : 0n);

/** Notes what was granted into the monthly bucket, by the month that it ends with. */
export function addFresh(
  account: WorkspaceAccount,
  { month, amountNano }: { month: Month; amountNano: bigint },
): void {
  // A grant that was made before midnight and stands after it has lapsed already.
  if (account.freshMonth !== undefined && month < account.freshMonth) return;
  if (account.freshMonth !== month) account.freshNano = 0n;
  account.freshMonth = month;
  account.freshNano += amountNano;
}

/**
 * What is left of the monthly credits of older months. The oldest are spent first, so as long as
 * any of them is left, everything that this month granted is there as well.
 */
export function lapsedOf(account: WorkspaceAccount, month: Month): bigint {
  const lapsed = account.monthlyNano - (account.freshMonth === month ? account.freshNano : 0n);
  return lapsed > 0n ? lapsed : 0n;
}

/** Everything a workspace owns, holds included. */
export const balanceOf = (account: WorkspaceAccount): bigint =>
  account.monthlyNano + account.topupNano;

/** What no hold has taken yet. */
export const availableOf = (account: WorkspaceAccount): bigint =>
  balanceOf(account) - account.heldNano;
