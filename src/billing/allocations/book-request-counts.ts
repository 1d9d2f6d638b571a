/** A run whose requests are bounded. */
export interface CountedRun {
  id: string;
  maxRequests: number;
}

/** The outcome of counting a request: the requests of each run by then, or the one that is full. */
export type RequestCountOutcome =
  | { ok: true; used: readonly number[] }
  | { ok: false; full: CountedRun };

/**
 * Counts the requests of runs. A request counts in its run and in each run around it, in all or in
 * none.
 */
export interface RequestCounts {
  take(workspaceId: string, runs: readonly CountedRun[]): Promise<RequestCountOutcome>;
  /** Takes back the count of a request that was refused. */
  giveBack(workspaceId: string, runs: readonly CountedRun[]): void;
  /** Returns the requests of a run so far. */
  used(workspaceId: string, run: CountedRun): Promise<number>;
}

/** Reads the settled requests of a run, with those of the runs in it, from the database. */
export type SettledRequests = (runId: string) => Promise<number>;

/** The request counts of one process. */
export class BookRequestCounts implements RequestCounts {
  private readonly counts = new Map<string, Promise<{ used: number }>>();

  constructor(private readonly settled: SettledRequests) {}

  async take(_: string, runs: readonly CountedRun[]): Promise<RequestCountOutcome> {
    const counts = await Promise.all(runs.map(({ id }) => this.countOf(id)));
    const full = runs.find(({ maxRequests }, index) => (counts[index]?.used ?? 0) >= maxRequests);
    if (full !== undefined) return { ok: false, full };
    return { ok: true, used: counts.map((count) => (count.used += 1)) };
  }

  giveBack(_: string, runs: readonly CountedRun[]): void {
    for (const { id } of runs)
      void this.counts.get(id)?.then((count) => (count.used = Math.max(0, count.used - 1)));
  }

  async used(_: string, { id }: CountedRun): Promise<number> {
    return (await this.countOf(id)).used;
  }

  private countOf(id: string): Promise<{ used: number }> {
    let count = this.counts.get(id);
    if (count === undefined) {
      count = this.settled(id).then((used) => ({ used }));
      count.catch(() => this.counts.delete(id));
      this.counts.set(id, count);
    }
    return count;
  }
}
