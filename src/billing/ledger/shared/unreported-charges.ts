import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import type { AccountBook } from "../book/account-book.ts";
import { type ChargeParts, splitOverBuckets } from "../transfer.ts";
import { reportScript, tagText } from "./ledger-scripts.ts";
import { keyIdsOf, type SharedHold } from "./local-holds.ts";
import type { OpenCharges } from "./open-charges.ts";
import type { SharedAccounts } from "./shared-accounts.ts";

/** A charge that the database gets before the shared server learns of it. */
export interface HeldCharge {
  holdId: string;
  hold: SharedHold;
  parts: ChargeParts;
  /** The workspace's balance after the charge, as far as this gateway knows. */
  balanceNano: bigint;
  /** The hour of the charge, in hours since the epoch. */
  hour: number;
  tags: readonly string[];
}

/** The most charges in one report. */
const reportedAtOnce = 200;
/**
 * How long charges of holds in advance wait for others, in milliseconds. Holds in advance exist
 * only while a workspace has plenty of credits, so the wait keeps none from requests.
 */
const gatherMs = 20;

/** The dependencies of the unreported charges. */
interface UnreportedChargesOptions {
  accounts: Pick<SharedAccounts, "run" | "eraOf">;
  book: AccountBook;
  charges: Pick<OpenCharges, "add" | "drop" | "settled">;
  onError(error: unknown): void;
}

/**
 * The charges that were handed to the database and that the shared server does not have yet. Their
 * holds remain until then and keep the credits from other requests. Charges that are committed in
 * the same turn of the event loop are reported together.
 */
export class UnreportedCharges {
  /** The charges, by workspace, that the balances in the book do not include yet. */
  private readonly ahead = new Map<string, ChargeParts>();
  /** Committed charges whose report is about to be sent. */
  private toReport: HeldCharge[] = [];
  private gathering: ReturnType<typeof setTimeout> | undefined;
  private isDue = false;
  private count = 0;
  private onceNone: (() => void)[] = [];

  constructor(private readonly options: UnreportedChargesOptions) {}

  /**
   * Resolves to true once the server knows of every charge, and to false where that takes too long.
   */
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

  /** Begins the charge of a hold, split over the buckets by the most recently received balances. */
  begin({
    amountNano,
    ...charge
  }: Omit<HeldCharge, "parts" | "balanceNano"> & { amountNano: bigint }): HeldCharge {
    const { holdId, hold } = charge;
    const { workspaceId, entry } = hold;
    const known = this.options.book.workspace(workspaceId);
    const ahead = this.ahead.get(workspaceId);
    const there = {
      monthlyNano: known.monthlyNano - (ahead?.monthlyNano ?? 0n),
      topupNano: known.topupNano - (ahead?.topupNano ?? 0n),
    };
    const parts = splitOverBuckets(there, amountNano);
    this.addAhead(workspaceId, parts, 1n);
    this.count += 1;
    this.options.charges.add(holdId, { workspaceId, keyIds: keyIdsOf(hold), entry });
    return { ...charge, parts, balanceNano: there.monthlyNano + there.topupNano - amountNano };
  }

  /** Reports a charge that the database has committed; the request does not wait for the report. */
  reportSoon(charge: HeldCharge): void {
    this.toReport.push(charge);
    if (charge.hold.isAdvance) {
      this.gathering ??= setTimeout(() => this.reportNow(), gatherMs);
    } else if (!this.isDue) {
      this.isDue = true;
      // Runs after this turn, in which the answers of one group of commits arrive.
      setImmediate(() => this.reportNow());
    }
  }

  /**
   * Reports the committed charges now, so that the server knows of them before the next request to
   * it.
   */
  reportNow(): void {
    clearTimeout(this.gathering);
    this.gathering = undefined;
    this.isDue = false;
    if (this.toReport.length > 0) this.reportAll();
  }

  /** Ends a charge that the server received or the database refused. */
  end(charge: HeldCharge): void {
    this.leave(charge);
    this.options.charges.drop(charge.holdId);
  }

  private reportAll(): void {
    const byWorkspace = Map.groupBy(this.toReport, ({ hold }) => hold.workspaceId);
    this.toReport = [];
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
    // Stops renewing the holds, since the report may already have ended them.
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
   * Makes the server read the database where it is unknown whether it has the charge or still has
   * the hold. Retries until the server answers.
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
 * Returns whether the server has a hold as this process knows it: the server's run and the
 * database's history have not changed since the hold was taken, and the server answered every
 * message about it.
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
