import type { CommitQueue, CommitUnit } from "../../platform/storage/commit-queue.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { chargeRows } from "./transfer.ts";

/** A charge that the database refused after its answer was delivered. */
export interface RefusedCharge {
  chargeId: string;
  workspaceId: string;
  keyId: string;
  amountNano: bigint;
  /** The rows that are committed with the charge: the generation record and its counters. */
  alongside: CommitUnit;
}

/** The callbacks for uncollected charges. */
export interface UncollectedReports {
  /**
   * Called when a charge cannot be taken from its workspace's balance and is kept for the books.
   */
  onKept(amountNano: bigint): void;
  /** Called when charges were written to the books. */
  onWritten(count: number, amountNano: bigint): void;
  /**
   * Called when charges will never be in the books, because there was no room for them or the
   * gateway ended before the database was back.
   */
  onLost(count: number, amountNano: bigint): void;
}

interface Kept {
  amountNano: bigint;
  unit: CommitUnit;
}

/**
 * The most charges that are kept. One takes some 3 KB with its record, so all take 30 MB at most.
 */
const keptMax = 10_000;
const batchMax = 500;
const retryMs = 500;

/**
 * Keeps charges that the database refused in memory until it takes commits again, and then books
 * them as uncollected: to the operator's account, with the record of the request. They are lost
 * only with the process.
 */
export class UncollectedCharges {
  private readonly commits: CommitQueue;
  private readonly reports: UncollectedReports;
  private readonly nowMs: () => number;
  private kept: Kept[] = [];
  /** The number of charges that are being committed. */
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

  /** The number of charges that wait for the database. */
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

  /** Writes the charges that the database takes now, and reports the rest as lost. */
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

  /**
   * Writes one charge first, since a database that is not back yet would refuse all of them, and
   * then the others.
   */
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
      // A charge that is in the books already was written by a commit whose answer was lost.
      return outcome?.status === "rejected" && !isUniqueViolation(outcome.reason);
    });
    this.underWay = 0;
    // Refused charges go to the end, so that one with invalid data does not delay the others.
    this.kept.push(...refused);
    const written = batch.filter((each) => !refused.includes(each));
    if (written.length > 0) this.reports.onWritten(written.length, sumOf(written));
    return refused.length > 0 ? "refused" : "written";
  }
}

const sumOf = (kept: readonly Kept[]): bigint =>
  kept.reduce((sum, { amountNano }) => sum + amountNano, 0n);
