/**
 * The number of slices of the window. With ten, a sample counts for four and a half to five
 * minutes.
 */
const slices = 10;
const sliceMs = 30_000;
/**
 * The number of buckets. Each is 5.3 % wider than the one before, so that 256 of them span a factor
 * of 500,000 and a percentile is accurate to 2.6 %.
 */
const buckets = 256;
const growth = 1.053;
const logGrowth = Math.log(growth);
/**
 * The number of buckets in a group. Groups are counted as well, so that a percentile is found in
 * some twenty steps.
 */
const groupSize = 16;
/**
 * The most samples that one bucket of one slice counts; further samples of the same size are
 * ignored.
 */
const countMax = 0xffff;

/**
 * The distribution of a measure over the last five minutes, in bounded memory (6 KB) at any
 * traffic: a histogram for each slice of time, and their running sum.
 */
export class RollingDistribution {
  private readonly sliceCounts = new Uint16Array(slices * buckets);
  private readonly counts = new Uint32Array(buckets);
  private readonly groupCounts = new Uint32Array(buckets / groupSize);
  private count = 0;
  private slice = 0;

  /** Values below `smallest` count as `smallest`. */
  constructor(private readonly smallest: number) {}

  record(value: number, nowMs: number): void {
    this.advance(nowMs);
    const bucket = this.bucketOf(value);
    const index = (this.slice % slices) * buckets + bucket;
    const counted = this.sliceCounts[index] ?? 0;
    if (counted >= countMax) return;
    this.sliceCounts[index] = counted + 1;
    this.add(bucket, 1);
  }

  /**
   * Returns the value that this share of the samples, such as 0.9, does not exceed; undefined
   * without samples.
   */
  at(share: number, nowMs: number): number | undefined {
    const bucket = this.bucketAt(share, nowMs);
    return bucket === undefined ? undefined : this.smallest * growth ** (bucket + 0.5);
  }

  /**
   * Returns whether this share of the samples is at most `bound`, to the accuracy of a bucket;
   * undefined without samples.
   */
  isAtMost(bound: number, at: { share: number; nowMs: number }): boolean | undefined {
    const bucket = this.bucketAt(at.share, at.nowMs);
    return bucket === undefined ? undefined : bucket <= this.bucketOf(bound);
  }

  /**
   * Returns whether this share of the samples is at least `bound`, to the accuracy of a bucket;
   * undefined without samples.
   */
  isAtLeast(bound: number, at: { share: number; nowMs: number }): boolean | undefined {
    const bucket = this.bucketAt(1 - at.share, at.nowMs);
    return bucket === undefined ? undefined : bucket >= this.bucketOf(bound);
  }

  private bucketOf(value: number): number {
    const bucket = Math.floor(Math.log(value / this.smallest) / logGrowth);
    return bucket > 0 ? Math.min(bucket, buckets - 1) : 0;
  }

  private bucketAt(share: number, nowMs: number): number | undefined {
    this.advance(nowMs);
    if (this.count === 0) return undefined;
    // The nearest rank; the small term keeps 0.9 * 10 at 9.
    let left = Math.max(1, Math.ceil(share * this.count - 1e-9));
    let group = 0;
    for (; left > (this.groupCounts[group] ?? left); group += 1)
      left -= this.groupCounts[group] ?? 0;
    for (let bucket = group * groupSize; bucket < buckets; bucket += 1) {
      left -= this.counts[bucket] ?? 0;
      if (left <= 0) return bucket;
    }
    return buckets - 1;
  }

  private add(bucket: number, count: number): void {
    const group = Math.floor(bucket / groupSize);
    this.counts[bucket] = (this.counts[bucket] ?? 0) + count;
    this.groupCounts[group] = (this.groupCounts[group] ?? 0) + count;
    this.count += count;
  }

  private advance(nowMs: number): void {
    const slice = Math.floor(nowMs / sliceMs);
    if (slice <= this.slice) return;
    for (let passed = Math.max(this.slice + 1, slice - slices + 1); passed <= slice; passed += 1)
      this.forget(passed % slices);
    this.slice = slice;
  }

  private forget(index: number): void {
    if (this.count === 0) return;
    const start = index * buckets;
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      const counted = this.sliceCounts[start + bucket] ?? 0;
      if (counted === 0) continue;
      this.add(bucket, -counted);
      this.sliceCounts[start + bucket] = 0;
    }
  }
}
