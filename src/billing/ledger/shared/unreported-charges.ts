import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import type { AccountBook } from "../account-book.ts";
import { type ChargeParts, splitOverBuckets } from "../transfer.ts";
import { reportScript, tagText } from "./ledger-scripts.ts";
import { keyIdsOf, type SharedHold } from "./local-holds.ts";
import type { OpenCharges } from "./open-charges.ts";
import type { SharedAccounts } from "./shared-accounts.ts";

/** A charge that the database gets before the shared server hears of it. */
export interface HeldCharge {
  holdId: string;
  hold: SharedHold;
  parts: ChargeParts;
  /** What the workspace has after it, as far as this gateway knows. */
  balanceNano: bigint;
  /** The hour of the charge, counted from the epoch. */
  hour: number;
  tags: readonly string[];
}

/** Charges that one message reports. */
const reportedAtOnce = 200;
/** How long charges of advance holds wait for others: where these are taken, much is free. */
const gatherMs = 20;

/** What they are kept with. */
interface UnreportedChargesOptions {
  accounts: Pick<SharedAccounts, "run" | "eraOf">;
  book: AccountBook;
  charges: Pick<OpenCharges, "add" | "drop" | "settled">;
  onError(error: unknown): void;
}

/**
 * Charges from when they are handed to the database until the shared server has them. Their holds
 * stay until then and keep the money from other requests; those whose charge stands in the same turn
 * of the event loop are reported together.
 */
export class UnreportedCharges {
  private readonly options: UnreportedChargesOptions;
  /** What the balances in the book do not know of yet, by workspace. */
  private readonly ahead = new Map<string, ChargeParts>();
  private standing: HeldCharge[] = [];
  private gathering: ReturnType<typeof setTimeout> | undefined;
  private isDue = false;
  private count = 0;
  private onceNone: (() => void)[] = [];

  constructor(options: UnreportedChargesOptions) {
    this.options = options;
  }

  /** Resolves to true once the server knows of every charge, to false where that takes too long. */
  untilNone(patienceMs: number): Promise<boolean> {
    if (this.count === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), patienceMs);
      this.onceNone.push(() => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  /** Takes a charge of its hold, out of the buckets as they were last heard of. */
  begin({
    amountNano,
    ...charge
  }: Omit<HeldCharge, "parts" | "balanceNano"> & { amountNano: bigint }): HeldCharge {
    const { holdId, hold } = charge;
    const { workspaceId, entry } = hold;
    const heard = this.options.book.workspace(workspaceId);
    const ahead = this.ahead.get(workspaceId);
    const there = {
      monthlyNano: heard.monthlyNano - (ahead?.monthlyNano ?? 0n),
      topupNano: heard.topupNano - (ahead?.topupNano ?? 0n),
    };
    const parts = splitOverBuckets(there, amountNano);
    this.addAhead(workspaceId, parts, 1n);
    this.count += 1;
    this.options.charges.add(holdId, { workspaceId, keyIds: keyIdsOf(hold), entry });
    return { ...charge, parts, balanceNano: there.monthlyNano + there.topupNano - amountNano };
  }

  /** Reports a charge that the database has; the request does not wait for it. */
  stands(charge: HeldCharge): void {
    this.standing.push(charge);
    if (charge.hold.isAdvance) {
      this.gathering ??= setTimeout(() => this.reportNow(), gatherMs);
    } else if (!this.isDue) {
      this.isDue = true;
      // After this turn, with which the answers of a group of commits go out.
      setImmediate(() => this.reportNow());
    }
  }

  /** Reports what is known to stand, so that what is asked of the server next finds it there. */
  reportNow(): void {
    clearTimeout(this.gathering);
    this.gathering = undefined;
    this.isDue = false;
    if (this.standing.length > 0) this.reportAll();
  }

  /** The server has it, or the database refused it. */
  end(charge: HeldCharge): void {
    this.leave(charge);
    this.options.charges.drop(charge.holdId);
  }

  private reportAll(): void {
    const byWorkspace = Map.groupBy(this.standing, ({ hold }) => hold.workspaceId);
    this.standing = [];
    for (const charges of byWorkspace.values()) {
      for (let start = 0; start < charges.length; start += reportedAtOnce)
        void this.report(charges.slice(start, start + reportedAtOnce));
    }
  }

  private async report(together: readonly HeldCharge[]): Promise<void> {
    const { accounts, book } = this.options;
    const known = together.filter(({ hold }) => isCertain(hold, accounts.eraOf(hold.workspaceId)));
    for (const charge of together) if (!known.includes(charge)) this.reread(charge);
    const [first] = known;
    if (first === undefined) return;
    const { workspaceId } = first.hold;
    // From now on their holds are not renewed: the report may have ended them.
    for (const { holdId, hold } of known)
      this.options.charges.add(holdId, { workspaceId, keyIds: keyIdsOf(hold) });
    try {
      const values = known.flatMap(reportValues);
      const [monthly, topup] = await accounts.run(reportScript, workspaceId, values);
      for (const charge of known) this.end(charge);
      if (monthly === undefined || topup === undefined) return;
      Object.assign(book.workspace(workspaceId), {
        monthlyNano: BigInt(monthly),
        topupNano: BigInt(topup),
      });
    } catch (error) {
      if (!(error instanceof SharedStateAwayError)) this.options.onError(error);
      for (const charge of known) this.reread(charge);
    }
  }

  /**
   * Lets the server read the database, where it is unknown whether it has the charge or still has the
   * hold; tried until it answers.
   */
  private reread(charge: HeldCharge): void {
    const { holdId, hold, parts } = charge;
    const { workspaceId, entry } = hold;
    this.leave(charge);
    const account = this.options.book.workspace(workspaceId);
    account.monthlyNano -= parts.monthlyNano;
    account.topupNano -= parts.topupNano;
    this.options.charges.settled(holdId, { workspaceId, keyIds: keyIdsOf(hold), entry });
  }

  private leave({ hold: { workspaceId }, parts }: HeldCharge): void {
    this.addAhead(workspaceId, parts, -1n);
    this.count -= 1;
    if (this.count === 0) for (const resolve of this.onceNone.splice(0)) resolve();
  }

  private addAhead(workspaceId: string, parts: ChargeParts, sign: 1n | -1n): void {
    const before = this.ahead.get(workspaceId);
    const monthlyNano = (before?.monthlyNano ?? 0n) + sign * parts.monthlyNano;
    const topupNano = (before?.topupNano ?? 0n) + sign * parts.topupNano;
    if (monthlyNano === 0n && topupNano === 0n) this.ahead.delete(workspaceId);
    else this.ahead.set(workspaceId, { monthlyNano, topupNano });
  }
}

/**
 * Whether the server has a hold as it is known here: it is the server, and the history of the database,
 * that took it, and nothing that was asked about it went without an answer.
 */
const isCertain = ({ era, mayHaveGrown }: SharedHold, now: string | undefined): boolean =>
  !mayHaveGrown && era !== undefined && era === now;

const reportValues = ({ holdId, hold, parts, hour, tags }: HeldCharge): (string | number)[] => {
  const [keyId = "", parentId = ""] = keyIdsOf(hold);
  const { monthlyNano, topupNano } = parts;
  return [
    holdId,
    String(monthlyNano),
    String(topupNano),
    keyId,
    parentId,
    hour,
    hold.day,
    tagText(tags),
  ];
};
