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
}

/** What a key has spent and what is held for its requests in flight. */
export interface KeyAccount {
  spend: RollingSpend;
  heldNano: bigint;
  /** Wall time of the newest settled request since the start, or the hour of it before; null when there was none. */
  lastUsedAtMs: number | null;
}

/** The balances that admission looks at, in memory; the transfers on disk are what they are rebuilt from. */
export class AccountBook {
  private readonly workspaces = new Map<string, WorkspaceAccount>();
  private readonly keys = new Map<string, KeyAccount>();

  workspace(id: string): WorkspaceAccount {
    let account = this.workspaces.get(id);
    if (account === undefined) {
      account = { monthlyNano: 0n, topupNano: 0n, heldNano: 0n, usedNano: 0n, day: 0, dayNano: 0n };
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
      account = { spend: new RollingSpend(), heldNano: 0n, lastUsedAtMs: null };
      this.keys.set(id, account);
    }
    return account;
  }
}

/** Everything a workspace owns, holds included. */
export const balanceOf = (account: WorkspaceAccount): bigint => account.monthlyNano + account.topupNano;

/** What no hold has taken yet. */
export const availableOf = (account: WorkspaceAccount): bigint => balanceOf(account) - account.heldNano;
