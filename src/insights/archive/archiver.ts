import { type Clock, dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import { LogLimit } from "../../platform/kernel/log-limit.ts";
import type { ArchiveClient } from "./archive-client.ts";
import { lowestIdAt } from "../generation-record.ts";
import { archivedId, archivedRow, archiveTable, prepareArchive } from "./archive-tables.ts";
import type { Contents } from "./contents.ts";
import type { Outbox } from "./outbox.ts";

/** The records of one insert, and the milliseconds between checks of the outbox. */
const batchRecords = 2_000;
const everyMs = 1_000;
/** Milliseconds between searches for records of closed workspaces. */
const eraseEveryMs = hourMs;
/** The longest pause, in milliseconds, while the archive does not answer. */
const pauseMsMax = 30_000;
/** Milliseconds between checks that the archive was given everything and counts of the outbox. */
const fillEveryMs = minuteMs;
const countEveryMs = 10_000;

/** The figures of the archive, for metrics. */
export interface ArchiveFigures {
  /** Records that wait in the outbox. */
  waiting: number;
  /** Seconds for which the oldest batch has waited for the archive. */
  lagSeconds: number;
  /** Records that this gateway has archived, and those that were deleted before they could be. */
  archived: number;
  dropped: number;
  isUp: boolean;
}

interface ArchiverOptions {
  outbox: Outbox;
  client: ArchiveClient;
  /** Prompts and answers, which are archived after the records. */
  contents: Pick<Contents, "round" | "trim" | "report" | "figures">;
  clock: Clock;
  /** Days for which the archive keeps records; undefined means permanently. */
  keepDays: number | undefined;
  /**
   * Days for which the row store keeps records, and so for which the archive keeps those of closed
   * workspaces.
   */
  keepClosedDays: number;
  /** Returns the workspaces that were closed permanently. */
  closedWorkspaces(): Promise<readonly string[]>;
  /**
   * Returns whether this gateway, among several on the database, archives; undefined where there is
   * one.
   */
  isLeader: (() => boolean) | undefined;
  /** Called when records were deleted before they were archived. */
  onDropped(records: number): void;
  onError(error: unknown): void;
}

/**
 * Moves records from the outbox to the archive in the background. Several gateways may do so
 * concurrently without archiving anything twice, but one is enough.
 */
export class Archiver {
  readonly figures: ArchiveFigures = {
    waiting: 0,
    lagSeconds: 0,
    archived: 0,
    dropped: 0,
    isUp: false,
  };
  private readonly logLimit: LogLimit;
  private readonly stopping = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: Promise<void> = Promise.resolve();
  private isPrepared = false;
  private filledMs = -Infinity;
  private countedMs = -Infinity;
  private erasedMs = -Infinity;
  private pauseMs = everyMs;
  /** Since when every round has failed. */
  private failingSinceMs: number | undefined;

  constructor(private readonly options: ArchiverOptions) {
    this.logLimit = new LogLimit(options.clock);
  }

  /** Starts to archive. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    this.timer = setTimeout(() => {
      this.running = this.runLeading().finally(() => this.start());
    }, this.pauseMs);
  }

  /**
   * Resolves when the insert in progress has ended. What waits is archived after the next start.
   */
  async stop(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.timer);
    await this.running;
  }

  /** Archives everything that waits now. Rejects where the archive or the database refuses. */
  async round(): Promise<void> {
    const { outbox } = this.options;
    await this.prepare();
    for (const batch of await outbox.batches()) await this.archive(batch);
    while (!this.stopping.signal.aborted) {
      const batch = await outbox.settle(batchRecords);
      if (batch === undefined) break;
      await this.archive(batch);
    }
  }

  /**
   * Deletes records of closed workspaces that the row store no longer keeps, so that an archive
   * does not extend the retention of what former users left.
   */
  async erase(): Promise<void> {
    const { client, clock, keepClosedDays, closedWorkspaces } = this.options;
    const workspaces = await closedWorkspaces();
    if (workspaces.length > 0) {
      const parameters = {
        workspaces,
        end: archivedId(lowestIdAt(clock.nowMs() - keepClosedDays * dayMs).padEnd(36, "0")),
      };
      const due = "workspace_id in {workspaces:Array(String)} and id < {end:UInt128}";
      const [found] = await client.query(
        `select 1 from ${archiveTable} where ${due} limit 1`,
        parameters,
      );
      if (found !== undefined)
        await client.command(`delete from ${archiveTable} where ${due}`, parameters);
    }
    this.erasedMs = clock.monotonicMs();
  }

  /** Counts records that were deleted from the database before they could be archived. */
  drop(records: number): void {
    if (records === 0) return;
    this.figures.dropped += records;
    this.options.onDropped(records);
  }

  /**
   * Archives what waits and measures what is left, where this gateway leads. Failures are logged,
   * and tried again later.
   */
  async runLeading(): Promise<void> {
    const { isLeader, onError, contents, clock } = this.options;
    if (isLeader?.() === false) {
      this.failingSinceMs = undefined;
      Object.assign(this.figures, { waiting: 0, lagSeconds: 0 });
      contents.figures.waiting = 0;
      // What the leader does not know of: contents that could not be written here.
      contents.report();
      return;
    }
    try {
      await this.round();
      if (this.options.clock.monotonicMs() - this.erasedMs >= eraseEveryMs) await this.erase();
      await contents.round();
      this.pauseMs = everyMs;
      this.failingSinceMs = undefined;
    } catch (error) {
      this.failingSinceMs ??= clock.nowMs();
      this.pauseMs = Math.min(pauseMsMax, this.pauseMs * 2);
      this.isPrepared = false;
      const cause = error instanceof Error ? error.message : String(error);
      if (this.logLimit.pass(cause) !== undefined) onError(error);
    }
    await this.measure().catch(onError);
  }

  private async prepare(): Promise<void> {
    const { client, keepDays, outbox, clock } = this.options;
    if (!this.isPrepared) await prepareArchive(client, keepDays);
    this.isPrepared = true;
    if (clock.monotonicMs() - this.filledMs < fillEveryMs) return;
    await outbox.fill(this.stopping.signal);
    this.filledMs = clock.monotonicMs();
  }

  private async archive(batch: string): Promise<void> {
    const { outbox, client } = this.options;
    const { rows, missing } = await outbox.read(batch);
    if (rows.length > 0)
      await client.insert(archiveTable, { rows: rows.map(archivedRow), token: batch });
    await outbox.done(batch);
    this.figures.archived += rows.length;
    this.drop(missing);
  }

  private async measure(): Promise<void> {
    const { outbox, clock } = this.options;
    const [oldest] = await outbox.batches();
    // The name of a batch begins with the time at which it was formed.
    const settledMs = oldest === undefined ? undefined : Number.parseInt(oldest.slice(0, 12), 16);
    // An archive that was away from the start on has been given no batch.
    const sinceMs =
      settledMs ?? ((await outbox.oldestMs()) === undefined ? undefined : this.failingSinceMs);
    this.figures.lagSeconds =
      sinceMs === undefined ? 0 : Math.max(0, (clock.nowMs() - sinceMs) / 1_000);
    if (clock.monotonicMs() - this.countedMs < countEveryMs) return;
    this.figures.waiting = await outbox.count();
    await this.options.contents.trim();
    this.countedMs = clock.monotonicMs();
  }
}
