import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { chargeRows } from "./transfer.ts";

/** A charge that the database refused although its answer was delivered. */
export interface RefusedCharge {
  chargeId: string;
  workspaceId: string;
  keyId: string;
  amountNano: bigint;
  /** What is committed together with it: the generation record and what counts it. */
  alongside: CommitUnit;
}

/** What is reported of them. */
export interface UncollectedReports {
  /** A charge is lost to its workspace's balance, and kept for the books. */
  onKept(amountNano: bigint): void;
  /** So many charges were written to the books. */
  onWritten(count: number, amountNano: bigint): void;
  /**
   * So many charges will never be in the books: there was no room for them, or the gateway ended
   * before the database was back.
   */
  onLost(count: number, amountNano: bigint): void;
}

interface Kept {
  amountNano: bigint;
  unit: CommitUnit;
}

/** A record and its rows take some 3 KB: 30 MB at most. */
const keptMax = 10_000;
const batchMax = 500;
const retryMs = 500;

/**
 * Charges that the database refused, kept in memory until it takes commits again, and then booked
 * as uncollected: to the operator's account, with the record of the request. Lost only with the
 * process.
 */
export class UncollectedCharges {
  private readonly commits: CommitQueue;
  private readonly reports: UncollectedReports;
  private readonly nowMs: () => number;
  private kept: Kept[] = [];
  /** Those that are being committed. */
  private underWay = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(options: {
    commits: CommitQueue;
    clock: { nowMs(): number };
    reports: UncollectedReports;
  }) {
    this.commits = options.commits;
    this.reports = options.reports;
    this.nowMs = () => options.clock.nowMs();
  }

  /** Charges that wait for the database. */
  get count(): number {
    return this.kept.length + this.underWay;
  }

  /** Keeps a charge until it can be written. */
  keep({ amountNano, alongside, ...charge }: RefusedCharge): void {
    this.reports.onKept(amountNano);
    if (this.kept.length >= keptMax) return this.reports.onLost(1, amountNano);
    const posted = { chargedNano: 0n, uncollectedNano: amountNano };
    const { inserts, adds } = chargeRows({
      ...charge,
      posted,
      parts: { monthlyNano: 0n, topupNano: 0n },
      byokNano: 0n,
      nowMs: this.nowMs(),
    });
    this.kept.push({
      amountNano,
      unit: { inserts: [...inserts, ...alongside.inserts], adds: [...adds, ...alongside.adds] },
    });
    this.writeLater();
  }

  /** Writes what can be written, and reports the rest as lost. */
  async stop(): Promise<void> {
    clearTimeout(this.timer);
    await this.writing;
    if (this.kept.length > 0 && !this.commits.stalled) await this.write();
    clearTimeout(this.timer);
    if (this.kept.length > 0) this.reports.onLost(this.kept.length, sumOf(this.kept));
    this.kept = [];
  }

  private writeLater(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.writing = this.write();
    }, retryMs).unref();
  }

  /** One first, since a database that is not back yet would refuse them all; then the others. */
  private async write(): Promise<void> {
    let outcome = this.commits.stalled ? "refused" : await this.writeFirst(1);
    while (outcome === "written" && this.kept.length > 0) outcome = await this.writeFirst(batchMax);
    if (this.kept.length > 0) this.writeLater();
  }

  private async writeFirst(count: number): Promise<"written" | "refused"> {
    const batch = this.kept.splice(0, count);
    this.underWay = batch.length;
    const outcomes = await Promise.allSettled(batch.map(({ unit }) => this.commits.commit(unit)));
    const refused = batch.filter((_, index) => {
      const outcome = outcomes[index];
      // One that is in the books already was written by a commit whose answer was lost.
      return outcome?.status === "rejected" && !isUniqueViolation(outcome.reason);
    });
    this.underWay = 0;
    // To the end, so that one that is refused for what it says holds up no other.
    this.kept.push(...refused);
    const written = batch.filter((each) => !refused.includes(each));
    if (written.length > 0) this.reports.onWritten(written.length, sumOf(written));
    return refused.length > 0 ? "refused" : "written";
  }
}

const sumOf = (kept: readonly Kept[]): bigint =>
  kept.reduce((sum, { amountNano }) => sum + amountNano, 0n);
