import { type Clock, dayMs, hourMs } from "../../platform/kernel/clock.ts";
import {
  type ErrorLine,
  errorLinesMax,
  type FigureBucket,
  GenerationFigures,
  type Histogram,
  type LatencyBucket,
} from "../generation-figures.ts";
import {
  generationIdOf,
  GenerationStore,
  lowestIdAt,
  timeOfId,
  type GenerationRecord,
} from "../generation-record.ts";
import {
  type GenerationPage,
  type GenerationPageQuery,
  type GenerationRange,
  GenerationSearch,
  isCountable,
  olderOf,
  pageOf,
} from "../generation-search.ts";
import {
  intervals,
  rowsAnsweredMax,
  type UsageLine,
  type UsageQuery,
  UsageStore,
} from "../usage-store.ts";
import { ArchiveUnavailableError } from "./archive-client.ts";
import type { ArchiveReads } from "./archive-reads.ts";
import type { Outbox } from "./outbox.ts";

/**
 * Milliseconds for which the row store's hours of usage are used. It keeps them for 35 days and
 * purges hourly; older ones are read from the archive.
 */
const hoursKeptMs = 34 * dayMs;
/** The most by which a record's bucket may differ from its id's, because the clock was set. */
const bucketSlackMs = hourMs;

/** The border between row store and archive, for the stores that read from both. */
export interface ArchiveBorder {
  reads: ArchiveReads;
  outbox: Outbox;
  clock: Clock;
  /**
   * Whether the archive answers for everything that it has, or only for what the row store has no
   * longer.
   */
  always: boolean;
}

/**
 * Runs a query with the wall time before which records are read from the archive: those that the
 * row store has no longer or, where the archive is always read, all archived ones. Where the latter
 * fails because the archive does not answer, the row store answers.
 */
async function acrossBorder<Answer>(
  { outbox, always }: ArchiveBorder,
  ask: (borderMs: number) => Promise<Answer>,
): Promise<Answer> {
  const recordsFromMs = await outbox.recordsFromMs();
  const borderMs = always
    ? Math.max(recordsFromMs, await outbox.archivedBeforeMs())
    : recordsFromMs;
  try {
    return await ask(borderMs);
  } catch (error) {
    if (!(error instanceof ArchiveUnavailableError) || borderMs === recordsFromMs) throw error;
    return ask(recordsFromMs);
  }
}

/** Splits a range at the border; a part is undefined where it is empty. */
function divided<Range extends { fromMs: number; toMs: number }>(
  range: Range,
  borderMs: number,
): { older: Range | undefined; newer: Range | undefined } {
  const [fromMs, toMs] = [Math.max(range.fromMs, borderMs), Math.min(range.toMs, borderMs)];
  return {
    older: range.fromMs < toMs ? { ...range, toMs } : undefined,
    newer: fromMs < range.toMs ? { ...range, fromMs } : undefined,
  };
}

/** Reads single records, from the row store or the archive. */
export class ArchivedGenerations extends GenerationStore {
  private readonly border: ArchiveBorder;

  constructor(
    options: ConstructorParameters<typeof GenerationStore>[0] & { border: ArchiveBorder },
  ) {
    super(options);
    this.border = options.border;
  }

  override async find(workspaceId: string, id: string): Promise<GenerationRecord | undefined> {
    const found = await super.find(workspaceId, id);
    const generationId = generationIdOf(id);
    if (found !== undefined || !/^gen_[0-9a-f]{32}$/.test(generationId)) return found;
    const { outbox, reads } = this.border;
    return timeOfId(generationId) < (await outbox.recordsFromMs())
      ? reads.find(workspaceId, generationId)
      : undefined;
  }
}

/** Lists records, from the row store and then from the archive. */
export class ArchivedSearch extends GenerationSearch {
  private readonly border: ArchiveBorder;

  constructor(
    options: ConstructorParameters<typeof GenerationSearch>[0] & { border: ArchiveBorder },
  ) {
    super(options);
    this.border = options.border;
  }

  override page(query: GenerationPageQuery): Promise<GenerationPage> {
    return acrossBorder(this.border, async (borderMs) => {
      const { older, newer } = divided(query, borderMs);
      const isOlder = query.after !== undefined && query.after <= lowestIdAt(borderMs);
      const first: GenerationPage =
        newer === undefined || isOlder ? { records: [], next: undefined } : await super.page(newer);
      if (first.next !== undefined || older === undefined) return first;
      const window = {
        ...older,
        low: lowestIdAt(older.fromMs),
        end: olderOf(query.after, lowestIdAt(older.toMs)),
      };
      const rest = await this.border.reads.page(window, query.limit + 1 - first.records.length);
      return pageOf([...first.records, ...rest], query.limit);
    });
  }
}

/** Computes figures over records of both. */
export class ArchivedFigures extends GenerationFigures {
  private readonly border: ArchiveBorder;

  constructor(
    options: ConstructorParameters<typeof GenerationFigures>[0] & { border: ArchiveBorder },
  ) {
    super(options);
    this.border = options.border;
  }

  override async histogram(range: GenerationRange, nowMs: number): Promise<Histogram> {
    const bucketMs = this.bucketMsOf(range);
    // Counters are kept permanently, and answer for the whole range.
    if (!this.border.always && isCountable(range.filter) && bucketMs >= hourMs)
      return super.histogram(range, nowMs);
    await this.caughtUp();
    return acrossBorder(this.border, async (borderMs) => {
      const { older, newer } = divided(range, borderMs);
      const recent = newer && (await this.fromRecords(newer, bucketMs));
      // The row store's part was not read to its end.
      if (recent?.countedFromMs !== undefined)
        return older === undefined ? super.histogram(range, nowMs) : recent;
      const archived = older ? await this.border.reads.histogram(older, bucketMs) : [];
      return {
        bucketMs,
        buckets: merged([...archived, ...(recent?.buckets ?? [])], addBuckets),
        countedFromMs: undefined,
      };
    });
  }

  override errors(range: GenerationRange): Promise<ErrorLine[]> {
    return acrossBorder(this.border, async (borderMs) => {
      const { older, newer } = divided(range, borderMs);
      const archived = older ? await this.border.reads.errors(older) : [];
      const recent = newer ? await super.errors(newer) : [];
      return older === undefined ? recent : mergedErrors([...archived, ...recent]);
    });
  }

  override latencies(range: GenerationRange): ReturnType<GenerationFigures["latencies"]> {
    return acrossBorder(this.border, async (borderMs) => {
      const bucketMs = this.latencyBucketMsOf(range);
      const { older, newer } = divided(range, borderMs);
      const archived = older ? await this.border.reads.latencies(older, bucketMs) : [];
      const recent = newer ? await this.sampledBuckets(newer, bucketMs) : [];
      return { bucketMs, buckets: merged([...archived, ...recent], addSamples) };
    });
  }
}

function merged<Bucket extends { startMs: number }>(
  buckets: readonly Bucket[],
  add: (one: Bucket, other: Bucket) => Bucket,
): Bucket[] {
  const byStart = new Map<number, Bucket>();
  for (const bucket of buckets) {
    const known = byStart.get(bucket.startMs);
    byStart.set(bucket.startMs, known === undefined ? bucket : add(known, bucket));
  }
  return [...byStart.values()].sort((one, other) => one.startMs - other.startMs);
}

const addBuckets = (one: FigureBucket, other: FigureBucket): FigureBucket => ({
  startMs: one.startMs,
  requests: one.requests + other.requests,
  errors: one.errors + other.errors,
  tokens: one.tokens + other.tokens,
  costNanoUsd: one.costNanoUsd + other.costNanoUsd,
});

const ascending = (one: number, other: number): number => one - other;

const addSamples = (one: LatencyBucket, other: LatencyBucket): LatencyBucket => ({
  startMs: one.startMs,
  samples: one.samples + other.samples,
  latencyMs: [...one.latencyMs, ...other.latencyMs].sort(ascending),
  firstTokenMs: [...one.firstTokenMs, ...other.firstTokenMs].sort(ascending),
});

function mergedErrors(lines: readonly ErrorLine[]): ErrorLine[] {
  const byName = new Map<string, ErrorLine>();
  for (const line of lines) {
    const name = JSON.stringify([
      line.status,
      line.code,
      line.httpStatus,
      line.provider,
      line.model,
    ]);
    const known = byName.get(name);
    byName.set(name, {
      ...line,
      requests: line.requests + (known?.requests ?? 0),
      lastAtMs: Math.max(line.lastAtMs, known?.lastAtMs ?? 0),
    });
  }
  return [...byName.values()]
    .sort((one, other) => other.requests - one.requests || other.lastAtMs - one.lastAtMs)
    .slice(0, errorLinesMax);
}

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
