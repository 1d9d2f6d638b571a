import { hourMs } from "../../../platform/kernel/clock.ts";
import {
  type ErrorLine,
  errorLinesMax,
  type FigureBucket,
  GenerationFigures,
  type Histogram,
  type LatencyBucket,
} from "../../generation-figures.ts";
import { type GenerationRange, isCountable } from "../../generation-search.ts";
import { type ArchiveBorder, acrossBorder, divided } from "./archive-border.ts";

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
