import { dayMs, hourMs } from "../../../platform/kernel/clock.ts";
import {
  intervals,
  rowsAnsweredMax,
  type UsageLine,
  type UsageQuery,
  UsageStore,
} from "../../usage/usage-store.ts";
import { ArchiveUnavailableError } from "../archive-client.ts";
import { type ArchiveBorder, divided } from "./archive-border.ts";

/**
 * Milliseconds for which the row store's hours of usage are used. It keeps them for 35 days and
 * purges hourly; older ones are read from the archive.
 */
const hoursKeptMs = 34 * dayMs;
/** The most by which a record's bucket may differ from its id's, because the clock was set. */
const bucketSlackMs = hourMs;

/** Sums usage, from the counters and the archive. */
export class ArchivedUsage extends UsageStore {
  private readonly border: ArchiveBorder;

  constructor(options: ConstructorParameters<typeof UsageStore>[0] & { border: ArchiveBorder }) {
    super(options);
    this.border = options.border;
  }

  override async sums(query: UsageQuery): Promise<UsageLine[] | undefined> {
    const { clock, outbox, always } = this.border;
    // The row store keeps days permanently, and hours for some weeks.
    const neededMs = query.interval === "hour" ? clock.nowMs() - hoursKeptMs : 0;
    if (!always) return this.divide(query, neededMs);
    const archivedMs = (await outbox.archivedBeforeMs()) - bucketSlackMs;
    try {
      return await this.divide(query, Math.max(neededMs, archivedMs));
    } catch (error) {
      if (!(error instanceof ArchiveUnavailableError)) throw error;
      return this.divide(query, neededMs);
    }
  }

  /**
   * Reads the buckets that begin before the border from the archive. Each bucket is complete in one
   * of the two.
   */
  private async divide(query: UsageQuery, borderMs: number): Promise<UsageLine[] | undefined> {
    const lengthMs = intervals[query.interval];
    const { older, newer } = divided(
      query,
      Math.floor(Math.max(0, borderMs) / lengthMs) * lengthMs,
    );
    const archived = older ? await this.border.reads.sums(older) : [];
    const recent = newer ? await super.sums(newer) : [];
    if (archived === undefined || recent === undefined) return undefined;
    const lines = [...archived, ...recent];
    return lines.length > rowsAnsweredMax ? undefined : lines;
  }
}
